"""A whole instance and a real browser that works in its console."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Playwright, ViewportSize, sync_playwright

from tests.flows.conftest import ShopClient
from tests.stack import ROOT, Stack, wait_until

# The first has no window system inside it and takes half the processor time of the others.
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
DESKTOP: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
AXE = ROOT / ".venv" / "node" / "node_modules" / "axe-core" / "axe.min.js"
# The elements that can be scrolled sideways.
WIDE = "[...document.querySelectorAll('html, .results')].filter(e => e.scrollWidth > e.clientWidth).length"
# A login takes seconds, so tests share it, far shorter than its confirmation lasts (sign_in.PERIOD).
FRESH_SECONDS = 120
# As if the last proof of a colleague was an hour ago.
MAKE_STALE = """
from allauth.usersessions.models import UserSession
from console.people.sessions import SessionStore
for row in UserSession.objects.filter(user__username="{0}"):
    session = SessionStore(row.session_key)
    session["proven_at"] -= 3600
    for record in session.get("account_authentication_methods", []):
        record["at"] -= 3600
    session.save()
"""


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder: Path = tmp_path_factory.mktemp("instance") / "data"
    with Stack.on_shared_server(folder, RATE_LIMIT="0") as running:
        wait_until(running.is_ready, 180)
        yield running


@pytest.fixture(scope="package")
def playwright_driver() -> Iterator[Playwright]:
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="package")
def browser(playwright_driver: Playwright) -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("There is no Chromium here. On Debian and Ubuntu: apt install chromium-headless-shell")
    # Without its sandbox, because root, which CI is, cannot use it. It opens pages of this instance only.
    with playwright_driver.chromium.launch(executable_path=program, args=["--no-sandbox"]) as started:
        yield started


@pytest.fixture(scope="package")
def logins() -> list[tuple[float, Any]]:
    """When the demo's admin logged in, and the cookies that this gave."""
    return []


@pytest.fixture
def login_state(stack: Stack, browser: Browser, logins: list[tuple[float, Any]]) -> Any:
    """The cookies of the demo's admin after a login, which is also a confirmation for some minutes."""
    if not logins or time.monotonic() - logins[-1][0] > FRESH_SECONDS:
        with browser.new_context(base_url=stack.base_url) as context:
            log_in(context.new_page(), stack.demo["admin_user"], stack.demo["admin_password"])
            logins.append((time.monotonic(), context.storage_state()))
    return logins[-1][1]


@pytest.fixture
def page(stack: Stack, browser: Browser, login_state: Any) -> Iterator[Page]:
    """A page of a logged-in admin. Errors of scripts and refused resources fail the test."""
    with browser.new_context(
        base_url=stack.base_url,
        viewport=DESKTOP,
        storage_state=login_state,
        permissions=["clipboard-read", "clipboard-write"],
    ) as context:
        opened = context.new_page()
        errors: list[str] = []
        opened.on("pageerror", lambda error: errors.append(str(error)))
        opened.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        yield opened
        assert errors == []


@pytest.fixture
def shop_client(stack: Stack) -> ShopClient:
    return ShopClient(stack.base_url, stack.secret_key)


def log_in(page: Page, name: str, password: str) -> None:
    page.goto("/admin/")
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/admin/")


def serious_faults(page: Page) -> list[str]:
    """Serious and critical faults that axe finds on this page."""
    # The console's policy forbids scripts that are added to a page, so axe runs in the context of the test.
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run({resultTypes: ['violations']})")
    return [
        f"{each['id']}: {node['html']}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
