"""The balance of a merchant in the API."""

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from core import ids
from core.clock import iso
from ledger import services as ledger
from ledger.journal_types import JournalType
from tests.conftest import SandboxBankClient, Shop
from tests.ledger.builders import MerchantLedger

PATH = "/Thai/v1/balance"


def shown(shop: Shop, at: str = "") -> tuple[int, int, int]:
    """Available, reserved and owed; both forms of the path say the same."""
    thai, plain = (shop.get(f"{path}{at and '?at='}{at}") for path in (PATH, "/v1/balance"))
    assert (thai.status_code, thai.content) == (200, plain.content)
    balance = thai.json()
    assert balance.pop("currency") == "THB"
    assert balance.keys() in ({"available", "reserved"}, {"available", "reserved", "owed"})
    assert balance.get("owed") != 0
    return balance["available"], balance["reserved"], balance.get("owed", 0)


def posting(shop: Shop, type: JournalType, amount: int, at: datetime) -> dict[str, Any]:
    subject_id = ids.new("sub_", at)
    return {
        "merchant_id": shop.merchant.id,
        "type": type,
        "subject_id": subject_id,
        "amount": amount,
        "now": at,
    }


def test_balance_of_a_new_merchant_is_zero(shop: Shop) -> None:
    answer = shop.get(PATH)
    assert (answer.status_code, answer.json()) == (200, {"available": 0, "reserved": 0, "currency": "THB"})


@pytest.mark.slow
def test_paid_money_is_in_the_available_balance(
    shop: Shop, other_shop: Shop, bank: SandboxBankClient
) -> None:
    paid, declined, wrong = shop.qr_code(), shop.qr_code(), shop.qr_code()
    bank.notify(paid)
    bank.notify(paid)
    bank.notify(declined, type="decline")
    bank.notify(wrong, satang=1)
    assert shown(shop) == (150_000, 0, 0)
    assert shown(other_shop) == (0, 0, 0)


def test_balance_shows_reserved_money_and_debt(shop: Shop, noon: datetime) -> None:
    MerchantLedger(shop.merchant.id).credit(100)
    ledger.reserve(**posting(shop, JournalType.WITHDRAWAL_RESERVED, 60, noon))
    assert shown(shop) == (40, 60, 0)
    MerchantLedger(shop.merchant.id).reverse(100)
    assert shown(shop) == (0, 60, 60)


@pytest.mark.slow
def test_balance_at_a_past_instant_excludes_later_entries(
    shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        bank.notify(shop.qr_code())
        clock.move_to(noon + timedelta(hours=1))
        bank.notify(shop.qr_code(amount=50_000))
        ledger.reserve(**posting(shop, JournalType.REFUND_RESERVED, 30_000, noon + timedelta(hours=2)))
        ledger.roll_up_due(now=noon)
        moments = {
            "2026-11-20": (0, 0, 0),
            iso(noon - timedelta(milliseconds=1)): (0, 0, 0),
            iso(noon): (150_000, 0, 0),
            "2026-11-21T12:00:00%2B07:00": (150_000, 0, 0),
            iso(noon + timedelta(hours=1)): (200_000, 0, 0),
            iso(noon + timedelta(hours=2)): (170_000, 30_000, 0),
            "2026-11-21": (170_000, 30_000, 0),
            "9999-12-30": (170_000, 30_000, 0),
            "9999-12-31": (170_000, 30_000, 0),
            "0001-01-01": (0, 0, 0),
        }
        assert {at: shown(shop, at) for at in moments} == moments
        assert shown(shop) == (170_000, 30_000, 0)


@pytest.mark.parametrize(
    "query",
    ["at=", "at=now", "at=2026-02-30", "at=2569-11-21", "at=2569-11-21T00:00:00", "at=1", "at=%00",
     "at=2026-11-21&at=2026-11-21"],
)  # fmt: skip
def test_balance_at_an_invalid_instant_is_refused(shop: Shop, query: str) -> None:
    answer = shop.get(f"{PATH}?{query}")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_parameters", "at")
