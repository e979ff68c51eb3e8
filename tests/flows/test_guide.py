"""The code, commands and numbers in docs/webhooks-tutorial.md and docs/webhooks.md are right."""

import json
import os
import re
import subprocess
import sys
from datetime import timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from standardwebhooks import Webhook

from tests.flows.conftest import ShopClient
from tests.flows.examples import BODY, FOLDER, NEW, OLD, signed
from tests.stack import ROOT
from tests.webhook_receiver import Receiver
from webhooks import endpoints, probes, signing
from webhooks.delivery import circuit_breaker as breaker
from webhooks.delivery import queue, retry_schedule
from webhooks.models import EventType

DOCS = ROOT / "docs"
CURL = Path(__file__).with_name("curl.py")
TUTORIAL, REFERENCE = (DOCS / name for name in ("webhooks-tutorial.md", "webhooks.md"))
TEXT = TUTORIAL.read_text() + REFERENCE.read_text()
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
# A link to an example stands before code of that example.
SHOWN = re.compile(
    r"^Without a library, from \[(.+)\]\(examples/\1\):\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE
)


def blocks(language: str) -> list[str]:
    return [code for _, name, code in BLOCK.findall(TEXT) if name == language]


def test_webhook_tutorial_code_equals_the_example_files() -> None:
    shown = dict(SHOWN.findall(TEXT))
    assert sorted(shown) == ["receiver.go", "receiver.mjs", "receiver.php", "receiver.py"]
    assert all(code in (FOLDER / name).read_text() for name, code in shown.items())


def test_webhook_tutorial_library_code_verifies_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", NEW)
    given: dict[str, Any] = {}
    exec(blocks("python")[0], given)
    is_genuine = given["is_genuine"]
    assert is_genuine({name.title(): value for name, value in signed().items()}, BODY)
    assert not is_genuine(signed(), BODY + b" ")
    assert not is_genuine(signed(late=310), BODY)
    assert not is_genuine(signed(secret=OLD), BODY)


@pytest.mark.slow
def test_documented_webhook_bodies_have_the_fields_of_the_openapi_schema() -> None:
    described = json.loads((ROOT / "docs" / "openapi.json").read_text())
    shown = [json.loads(code) for code in blocks("json")]
    assert {body["event"] for body in shown} == set(described["webhooks"])
    for body in shown:
        message = described["webhooks"][body["event"]]["post"]["requestBody"]
        sent = message["content"]["application/json"]["schema"]["properties"]
        data = described["components"]["schemas"][sent["data"]["$ref"].rpartition("/")[2]]
        always = [name for name in data["properties"] if name in data["required"]]
        assert (list(body), list(body["data"])) == (list(sent), always)


def test_every_event_type_is_documented() -> None:
    resources = {kind.partition(".")[0] for kind in EventType}
    named = set(re.findall(rf"`((?:{'|'.join(resources)})\.\w+)`", TEXT))
    rest = {f"withdrawal{state}" for state in re.findall(r"`(\.\w+)`", TEXT)}
    assert set(EventType) <= named | rest


def test_documented_webhook_retry_delays_equal_the_schedule() -> None:
    waits = [short(seconds) for seconds in retry_schedule.RETRY_DELAYS[1:]]
    assert f"| waits | | {' | '.join(waits)} |" in TEXT
    after = [
        f"{seconds / 3600:.1f} h"
        for seconds in accumulate(retry_schedule.RETRY_DELAYS)
        if seconds >= retry_schedule.HOUR
    ]
    assert " | ".join(after) in TEXT


def short(seconds: int) -> str:
    for unit, size in (("h", retry_schedule.HOUR), ("min", retry_schedule.MINUTE)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def test_documented_webhook_limits_equal_the_code() -> None:
    minutes, days = breaker.MAX_PAUSE_SECONDS / 60, breaker.DISABLE_AFTER.days
    phrases = [
        f"Up to {queue.MAX_IN_FLIGHT} messages",
        f"up to {queue.MAX_IN_FLIGHT_QUICK} while it answers within {queue.QUICK_MS} ms",
        f"{breaker.MAX_CONSECUTIVE_FAILURES} failures in a row, or {breaker.MAX_FAILURE_RATE:.0%}".replace(
            "%", " %"
        ),
        f"of at least {breaker.MIN_WINDOW_ATTEMPTS} attempts within {breaker.WINDOW.seconds // 60} minutes",
        (
            f"for {breaker.FIRST_PAUSE_SECONDS:.0f} seconds, then twice as long each time, "
            f"up to {minutes:.0f} minutes"
        ),
        f"After **{days} days** and at least {breaker.MAX_CONSECUTIVE_FAILURES} attempts",
        f"2xx within {settings.WEBHOOK_TIMEOUT_SECONDS:.0f} seconds",
        f"kept for {settings.WEBHOOK_ATTEMPT_RETENTION_DAYS} days",
        f"For {endpoints.SECRET_OVERLAP / timedelta(hours=1):.0f} hours after a renewal",
        f"waits {probes.TIMEOUTS.total:.0f} seconds",
    ]
    prose = " ".join(TEXT.split())
    assert [phrase for phrase in phrases if phrase not in prose] == []


def test_documented_example_signatures_are_correct() -> None:
    found = re.findall(r"signature with the secret `(.+?)` \| `(.+?)` \|", TEXT)
    body, message_id, at = b'{"test": 2432232314}', "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330
    assert all(text in TEXT for text in (body.decode(), message_id, str(at)))
    assert len(found) == 2
    for secret, signature in found:
        signed_here = signing.sign(secrets=[secret], message_id=message_id, timestamp=at, body=body)
        assert signed_here == signature


@pytest.mark.parametrize("page", [TUTORIAL, REFERENCE], ids=lambda page: page.name)
def test_links_of_the_webhook_pages_are_valid(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if not target.startswith("https://"):
            path, _, heading = target.partition("#")
            linked = page.parent / path if path else page
            assert linked.exists(), target
            assert not heading or heading in headings(linked), target


def headings(page: Path) -> list[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]


@pytest.mark.slow
def test_documented_webhook_commands_run_without_error(
    shop_client: ShopClient, endpoint: Receiver, tmp_path: Path
) -> None:
    """Run the commands of the tutorial, then those of the reference. The first failure ends the shell."""
    code = shop_client.qr_code()
    hook = shop_client.post(
        "/v1/webhooks", {"url": endpoint.url(), "events": ["payment.succeeded"], "secret": OLD}
    )
    test = shop_client.post(f"/v1/webhooks/{hook['webhook_id']}/test", {})
    for name, command in {"curl": f"{sys.executable} {CURL}", "python3": sys.executable}.items():
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        program.chmod(0o700)
    environ = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "BASE": shop_client.base_url,
        "KEY": shop_client.secret_key,
        "URL": endpoint.url("/guide"),
        "HOOK": hook["webhook_id"],
        "DELIVERY": test["delivery_id"],
        "PAYMENT": code["payment_id"],
        "WEBHOOK_SECRET": NEW,
    }
    commands = [code for code in blocks("sh") if "curl" in code]
    assert sum(code.count("curl ") for code in commands) == 17
    done = subprocess.run(
        ["sh", "-eux"],
        input="\n".join(commands),
        env=environ,
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ping, *_ = endpoint.to("/guide")
    Webhook(NEW).verify(ping.body, ping.headers)
