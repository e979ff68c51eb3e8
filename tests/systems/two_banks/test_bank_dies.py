"""A bank dies while a shop makes 200 codes a second: none is refused, and new codes go to the stand-by.

`-rP` prints the times.
"""

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
import requests

from merchants.bank_connections import ConnectionConfig
from tests.banks import fake_bbl, fake_scb, two_banks
from tests.banks.fake_bbl import FakeBbl, signed
from tests.banks.two_banks import MortalScb, biller_of
from tests.flows.conftest import ShopClient
from tests.stack import Stack, wait_until
from tests.webhook_receiver import ReceivedRequest, Reply, Script

pytestmark = [pytest.mark.slow, pytest.mark.alone]
PER_SECOND, CLIENTS = 200, 8
# With a machine for itself. Beside other tests the inquiries themselves are late.
WITHIN_SECONDS = 2.0
PAID = 20
# As if the codes had left the bank a minute earlier (`standby.STAY`).
A_MINUTE_LATER = """SET session_replication_role = replica;
    UPDATE merchants_merchant SET bank_changed_at = bank_changed_at - interval '1 minute'"""


class MortalBbl(FakeBbl):
    """While it is dead it breaks off each connection."""

    is_dead = False

    def reply_to(self, request: ReceivedRequest) -> Script:
        return Reply(closes=True) if self.is_dead else super().reply_to(request)


@dataclass
class Load:
    """A shop that makes codes at a fixed rate: when each was asked for and answered, its status and body."""

    client: ShopClient
    answers: list[tuple[float, float, int, dict[str, Any]]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def make_codes(self, number: int) -> None:
        address = self.client.base_url.removeprefix("http://")
        headers = {"Authorization": f"Bearer {self.client.secret_key}", "Content-Type": "application/json"}
        body = json.dumps({"amount": 150_000, "currency": "THB", "expiry_minutes": 60})
        due = time.monotonic() + number / PER_SECOND
        with closing(http.client.HTTPConnection(address, timeout=60)) as connection:
            while not self.stopped.wait(max(0, due - time.monotonic())):
                due, asked = due + CLIENTS / PER_SECOND, time.time()
                connection.request("POST", "/v1/qr-codes", body, headers)
                response = connection.getresponse()
                self.answers.append((asked, time.time(), response.status, json.loads(response.read())))

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self.make_codes, args=(each,)) for each in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stopped.set()
            for thread in threads:
                thread.join(60)

    def latest(self) -> dict[str, Any]:
        wait_until(lambda: len(self.answers) > 0, 60)
        return self.answers[-1][3]

    def first_at(self, biller_id: str) -> float | None:
        return next((done for _, done, _, code in list(self.answers) if biller_of(code) == biller_id), None)


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with Stack.on_shared_server(tmp_path / "data", RATE_LIMIT="0") as running:
        wait_until(running.is_ready, 180)
        yield running


def connect(stack: Stack, merchant_id: str, config: ConnectionConfig, folder: Path, *more: str) -> str:
    """Connect the merchant; return the address that the bank calls."""
    path = folder / f"{config.bank}.json"
    path.write_text(json.dumps(dict(config.credentials)))
    options = ["--bank", config.bank, "--biller-id", config.biller_id, "--reference3", config.reference3]
    made = stack.manage("connect_bank", merchant_id, *options, "--credentials", str(path), "--json", *more)
    return str(json.loads(made)["callback_url"])


def notify(address: str, code: dict[str, Any]) -> None:
    """Send the signed notification of the first bank that this code was paid."""
    now = datetime.now(UTC)
    body = two_banks.pushed(code, now)
    sent = requests.post(address, body, headers={"Signature": signed(body, now=now)}, timeout=60)
    assert sent.status_code == 200, sent.text


def test_bank_dies_and_no_code_is_refused(
    stack: Stack, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    made = json.loads(stack.manage("create_merchant", "--name", "Somtam", "--mode", "live", "--json"))
    client = ShopClient(stack.base_url, made["secret_key"])
    with MortalBbl.running() as bbl, MortalScb.running() as scb:
        at_scb = ConnectionConfig(
            "scb", fake_scb.BILLER, reference3="PTF", credentials=scb.config.credentials
        )
        notified = connect(stack, made["merchant_id"], two_banks.standby_config(bbl), tmp_path)
        connect(stack, made["merchant_id"], at_scb, tmp_path, "--standby")
        load = Load(client)
        paid: list[dict[str, Any]] = []
        with load.running():
            # Until it dies, the bank sends ten notifications a second, too.
            while sum(each.path == fake_bbl.INQUIRY for each in bbl.requests) < 4:
                paid.append(load.latest())
                notify(notified, paid[-1])
                load.stopped.wait(0.1)
            bbl.is_dead, died_at = True, time.time()
            wait_until(lambda: load.first_at(fake_scb.BILLER) is not None, 60)
            moved_at = load.first_at(fake_scb.BILLER)
            goal = len(load.answers) + 2 * PER_SECOND
            wait_until(lambda: len(load.answers) >= goal, 60)
        assert moved_at is not None
        asked = [each[0] for each in load.answers]
        billers = Counter(biller_of(each[3]) for each in load.answers)
        report = [
            f"{len(asked) / (max(asked) - min(asked)):.0f} codes a second: {dict(billers)}",
            f"first code of the stand-by {moved_at - died_at:.2f} s after the death of the bank",
        ]
        assert Counter(each[2] for each in load.answers) == {200: len(load.answers)}
        late = [each for each in load.answers if each[0] > moved_at + 1]
        assert {biller_of(each[3]) for each in late} == {fake_scb.BILLER}

        bbl.is_dead = False
        unpaid = [each[3] for each in load.answers if each[3] not in paid]
        old = [each for each in unpaid if biller_of(each) == fake_bbl.BILLER][-PAID:]
        for code in old:  # the bank sends what it could not send before
            notify(notified, code)
            client.wait_for_status(code, "succeeded")
        assert biller_of(client.qr_code()) == fake_scb.BILLER
        with psycopg.connect(stack.owner_url, autocommit=True) as connection:
            connection.execute(A_MINUTE_LATER)
        wait_until(lambda: biller_of(client.qr_code()) == fake_bbl.BILLER, 240)
        request.node.add_report_section("call", "times", "\n".join(report))
        assert client.get("/v1/balance")["available"] == (PAID + len(paid)) * 150_000
        stack.manage("audit")
    assert moved_at - died_at <= WITHIN_SECONDS
