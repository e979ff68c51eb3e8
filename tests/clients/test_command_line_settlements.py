"""`thaiqr settlements` and `thaiqr balance` show what acquirers transfer, and what they have not paid."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients import openapi
from tests.clients.command_line import WIDTH, CommandLine
from tests.webhook_receiver import Receiver, Reply

pytestmark = pytest.mark.slow

SHOWN = openapi.DOCUMENT["paths"]["/v1/settlements/{settlement_id}"]["get"]["responses"]["200"]
SETTLEMENT: dict[str, Any] = SHOWN["content"]["application/json"]["example"]


@pytest.fixture
def service() -> Iterator[Receiver]:
    with Receiver.running() as service:
        yield service


@pytest.fixture
def thaiqr(service: Receiver, tmp_path: Path) -> CommandLine:
    return CommandLine("tq_test_abcdefgh_secret", service.base_url, tmp_path)


def answer(service: Receiver, body: Any) -> None:
    service.default = Reply(headers={"Content-Type": "application/json"}, body=json.dumps(body).encode())


def test_settlements_are_listed(thaiqr: CommandLine, service: Receiver) -> None:
    answer(service, {"settlements": [SETTLEMENT], "total": 1, "limit": 20, "offset": 0, "has_more": False})
    shown = thaiqr.ok("settlements", "list", "--since", "2026-11-01").stdout
    assert SETTLEMENT["settlement_id"] in shown
    assert "1,441.42 THB" in shown
    assert max(len(line) for line in shown.splitlines()) <= WIDTH
    assert "start_date=2026-11-01" in service.requests[0].path


def test_settlement_is_shown_in_baht(thaiqr: CommandLine, service: Receiver) -> None:
    answer(service, SETTLEMENT)
    shown = dict(
        line.split(maxsplit=1)
        for line in thaiqr.ok("settlements", "get", SETTLEMENT["settlement_id"]).stdout.splitlines()
    )
    assert [shown[name] for name in ("gross", "fee", "fee_vat", "net_display")] == [
        "1,500.00 THB",
        "54.75 THB",
        "3.83 THB",
        "1,441.42 THB",
    ]
    assert thaiqr.ok("settlements", "get", SETTLEMENT["settlement_id"], "--json").json == SETTLEMENT


def test_payments_of_a_settlement_are_listed(thaiqr: CommandLine, service: Receiver) -> None:
    answer(service, {"payments": [], "total": 0, "limit": 20, "offset": 0, "has_more": False})
    thaiqr.ok("payments", "list", "--settlement", SETTLEMENT["settlement_id"])
    assert f"settlement_id={SETTLEMENT['settlement_id']}" in service.requests[0].path


def test_balance_shows_what_the_acquirer_has_not_paid(thaiqr: CommandLine, service: Receiver) -> None:
    answer(service, {"available": 0, "reserved": 0, "pending_settlement": 144_142, "currency": "THB"})
    assert "pending_settlement         1,441.42 THB" in thaiqr.ok("balance").stdout
