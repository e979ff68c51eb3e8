"""Asking for a withdrawal: what it shows, what it reserves, and what is refused."""

from typing import Any

import pytest
from pytest_django import Settings

from core import vault
from merchants.models import Merchant
from tests.conftest import Shop, open_shop
from tests.withdrawals.builders import (
    ACCOUNT,
    PATH,
    balance,
    event_data_of,
    events_of,
    fetch_withdrawal,
    withdrawal_request,
    withdrawn,
)
from transfers.models import Transfer
from webhooks.models import Event
from withdrawals.models import Withdrawal

pytestmark = pytest.mark.django_db


def test_a_withdrawal_shows_what_was_asked_for(shop: Shop) -> None:
    made = withdrawn(shop, reference="PAYOUT-1", metadata={"week": 47})
    assert made.pop("withdrawal_id").startswith("wd_")
    assert made.pop("created_at") == made.pop("updated_at")
    assert made == {
        "status": "pending",
        "awaiting_approval": False,
        "pending_reason": None,
        "amount": 100_000,
        "currency": "THB",
        "bank_code": "014",
        "bank_name": "Siam Commercial Bank",
        "bank_account": "4567",
        "account_name": "สมชาย ใจดี",
        "reference": "PAYOUT-1",
        "failure_code": None,
        "bank_reference": None,
        "metadata": {"week": 47},
        "completed_at": None,
    }


def test_it_reserves_the_money_orders_it_to_be_sent_and_tells_of_it(shop: Shop) -> None:
    made = withdrawn(shop)
    assert balance(shop) == (50_000, 100_000)
    order = Transfer.objects.get().order
    assert (order.order_id, order.purpose, order.amount) == (made["withdrawal_id"], "withdrawal", 100_000)
    assert (order.bank_code, order.account, order.account_name) == ("014", ACCOUNT, "สมชาย ใจดี")
    (pending,) = event_data_of(made)
    assert (pending["event"], pending["data"]) == ("withdrawal.pending", made)


def test_both_forms_of_the_path_make_the_same(shop: Shop) -> None:
    thai, plain = (
        shop.post(f"{form}/withdrawals", withdrawal_request(amount=100), key="one")
        for form in ("/Thai/v1", "/v1")
    )
    assert thai.content == plain.content
    assert plain["Idempotent-Replayed"] == "true"
    assert Withdrawal.objects.count() == 1


@pytest.mark.parametrize("given", ["014", "scb", "SCB", "Scb"])
def test_a_bank_is_named_by_its_code_or_its_short_name(shop: Shop, given: str) -> None:
    made = withdrawn(shop, bank_code=given)
    assert (made["bank_code"], made["bank_name"]) == ("014", "Siam Commercial Bank")


def test_all_there_is_can_be_withdrawn_and_nothing_more(shop: Shop) -> None:
    over = shop.post(PATH, withdrawal_request(amount=150_001), key="more")
    assert (over.status_code, over.json()["error"]["code"]) == (402, "insufficient_funds")
    assert over.json()["error"]["type"] == "payment_error"
    assert not Withdrawal.objects.exists()
    assert not Transfer.objects.exists()
    assert not Event.objects.filter(type__startswith="withdrawal.").exists()
    assert shop.post(PATH, withdrawal_request(amount=150_000), key="more").status_code == 200
    assert balance(shop) == (0, 150_000)
    assert shop.post(PATH, withdrawal_request(amount=100)).status_code == 402


BAD: dict[str, list[Any]] = {
    "amount": [None, 0, -1, 99, 200_000_001, 2**63 - 1, "100000", 100000.0, True, [100_000]],
    "currency": [None, "", "USD", "thb", 764, ["THB"]],
    "bank_code": [None, "", 14, "14", "999", "065", "nobank", " 014", "๐๑๔", "014" * 9, ["014"], {}],
    "bank_account": [
        *(None, "", 4051234567, [], "405123456", "40512345678", "4" * 16, "405-123-4567"),
        *("4051234567 ", " 051234567", "405123456\n", "๔051234567", "+405123456", "4051234567\n"),
    ],
    "account_name": [None, "", " ", "\t", "a\nb", "a\x7fb", "x" * 141, 7, ["x"]],
    "reference": [None, "", "x" * 36, 17, ["x"]],
    "metadata": [None, [], "x", {str(n): n for n in range(51)}, {"x": "x" * 8_192}],
}
FAULTS = [(field, value) for field, values in BAD.items() for value in values]


@pytest.mark.parametrize(("field", "value"), FAULTS, ids=[f"{name}={v!r}"[:30] for name, v in FAULTS])
def test_a_bad_field_is_named_and_leaves_nothing(shop: Shop, field: str, value: Any) -> None:
    answer = shop.post(PATH, withdrawal_request(**{field: value}))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["type"], error["param"]) == (
        400,
        f"invalid_{field}",
        "validation_error",
        field,
    )
    assert ACCOUNT not in answer.content.decode()
    assert not Withdrawal.objects.exists()
    assert balance(shop) == (150_000, 0)


@pytest.mark.parametrize("field", withdrawal_request().keys())
def test_a_missing_field_is_named(shop: Shop, field: str) -> None:
    asked = withdrawal_request()
    del asked[field]
    assert shop.post(PATH, asked).json()["error"]["code"] == f"invalid_{field}"


def test_of_several_faults_the_amount_is_named_first(shop: Shop) -> None:
    assert shop.post(PATH, {}).json()["error"]["code"] == "invalid_amount"
    assert shop.post(PATH, {"amount": 100}).json()["error"]["code"] == "invalid_currency"


@pytest.mark.parametrize(("code", "account"), [("030", "123456789012"), ("tisco", "12345678901234")])
def test_account_numbers_are_as_long_as_their_bank_makes_them(shop: Shop, code: str, account: str) -> None:
    assert withdrawn(shop, bank_code=code, bank_account=account)["bank_account"] == account[-4:]
    assert shop.post(PATH, withdrawal_request(bank_code=code, bank_account=account + "00")).status_code == 400


def test_what_is_not_a_field_changes_nothing(shop: Shop) -> None:
    made = withdrawn(
        shop, status="succeeded", awaiting_approval=True, merchant_id="mch_x", completed_at="now"
    )
    assert (made["status"], made["completed_at"]) == ("pending", None)
    assert Withdrawal.objects.get().merchant == shop.merchant


def test_a_live_merchant_without_a_bank_that_pays_out_is_told_so(db: None) -> None:
    shop = open_shop("Real", mode="live")
    for bank in ("", "scb"):
        Merchant.objects.filter(pk=shop.merchant.pk).update(bank=bank)
        answer = shop.post(PATH, withdrawal_request())
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bank_not_configured")


def test_without_a_sandbox_bank_test_merchants_have_none_either(shop: Shop, settings: Settings) -> None:
    settings.SANDBOX_BANK_SECRET = ""
    assert shop.post(PATH, withdrawal_request()).json()["error"]["code"] == "bank_not_configured"


def test_the_whole_account_number_is_sealed(shop: Shop) -> None:
    made = withdrawn(shop)
    row = Withdrawal.objects.values().get()
    assert ACCOUNT not in str(row)
    assert vault.open_sealed(row["account_sealed"], context=made["withdrawal_id"]) == ACCOUNT


def test_withdrawals_that_were_asked_for_twice_by_name_are_two(shop: Shop) -> None:
    first, second = (withdrawn(shop, amount=100, reference="same") for _ in range(2))
    assert first["withdrawal_id"] != second["withdrawal_id"]
    assert fetch_withdrawal(shop, first) == first
    assert events_of(second) == ["withdrawal.pending"]
