"""A bank dies while a shop makes 200 codes a second: none is refused, and new codes go to the stand-by.

`-rP` prints the times.
"""

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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


class MortalBbl(FakeBbl):
    """While it is dead it breaks off each connection."""

    is_dead = False

    def reply_to(self, request: ReceivedRequest) -> Script:
        return Reply(closes=True) if self.is_dead else super().reply_to(request)


@dataclass
class Load:
    """A shop that makes codes at a fixed rate: each answer with the time when it was asked for and its code."""

    client: ShopClient
    answers: list[tuple[float, float, int, dict[str, Any]]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def make_codes(self, number: int) -> None:
        connection = http.client.HTTPConnection(self.client.base_url.removeprefix("http://"), timeout=60)
        headers = {"Authorization": f"Bearer {self.client.secret_key}", "Content-Type": "application/json"}
        body = json.dumps({"amount": 150_000, "currency": "THB", "expiry_minutes": 60})
        due = time.monotonic() + number / PER_SECOND
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


def test_bank_dies_and_no_code_is_refused(stack: Stack, tmp_path: Path) -> None:
    made = json.loads(stack.manage("create_merchant", "--name", "Somtam", "--mode", "live", "--json"))
    client = ShopClient(stack.base_url, made["secret_key"])
    with MortalBbl.running() as bbl, MortalScb.running() as scb:
        at_scb = ConnectionConfig(
            "scb", fake_scb.BILLER, reference3="PTF", credentials=scb.config.credentials
        )
        notified = connect(stack, made["merchant_id"], two_banks.standby_config(bbl), tmp_path)
        connect(stack, made["merchant_id"], at_scb, tmp_path, "--standby")
        load = Load(client)
        with load.running():
            bbl.wait_for(lambda found: sum(each.path == fake_bbl.INQUIRY for each in found) >= 4)
            bbl.is_dead, died_at = True, time.time()
            wait_until(lambda: load.first_at(fake_scb.BILLER) is not None, 60)
            moved_at = load.first_at(fake_scb.BILLER)
            goal = len(load.answers) + 2 * PER_SECOND
            wait_until(lambda: len(load.answers) >= goal, 60)
        assert moved_at is not None
        asked = [each[0] for each in load.answers]
        billers = Counter(biller_of(each[3]) for each in load.answers)
        print(f"{len(asked) / (max(asked) - min(asked)):.0f} codes a second, {dict(billers)}")
        print(f"first code of the stand-by {moved_at - died_at:.2f} s after the death of the bank")
        assert Counter(each[2] for each in load.answers) == {200: len(load.answers)}
        late = [each for each in load.answers if each[0] > moved_at + 1]
        assert {biller_of(each[3]) for each in late} == {fake_scb.BILLER}

        bbl.is_dead = False
        old = [each[3] for each in load.answers if biller_of(each[3]) == fake_bbl.BILLER][-PAID:]
        for code in old:  # the bank sends what it could not send before
            now = datetime.now(UTC)
            body = two_banks.pushed(code, now)
            sent = requests.post(notified, body, headers={"Signature": signed(body, now=now)}, timeout=60)
            assert sent.status_code == 200, sent.text
            client.wait_for_status(code, "succeeded")
        wait_until(lambda: biller_of(client.qr_code()) == fake_bbl.BILLER, 240)
        print(f"back at the bank {time.time() - moved_at:.0f} s after they left it")
        assert client.get("/v1/balance")["available"] == PAID * 150_000
        assert "0 differences" in stack.manage("audit") or stack.manage("audit")
    assert moved_at - died_at <= WITHIN_SECONDS
