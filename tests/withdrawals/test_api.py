"""Withdrawals in the API: creation, refusals, retrieval and the list."""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
import time_machine
from pytest_django import Settings

from core import vault
from merchants.models import Merchant
from tests.conftest import Shop, open_shop
from tests.refunds.builders import error_of
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


def test_withdrawal_is_created_with_the_given_fields(shop: Shop) -> None:
    made = withdrawn(shop, reference="PAYOUT-1", metadata={"week": 47})
    assert made.pop("withdrawal_id").startswith("wd_")
    assert made.pop("created_at") == made.pop("updated_at")
    assert made == {
        "status": "pending",
        "awaiting_approval": False,
        "pending_reason": None,
        "amount": 100_000,
        "amount_display": "1,000.00 THB",
        "currency": "THB",
        "bank_code": "014",
        "bank_name": "Siam Commercial Bank",
        "bank_account": "4567",
        "account_name": "สมชาย ใจดี",
        "reference": "PAYOUT-1",
        "payout_night": None,
        "failure_code": None,
        "bank_reference": None,
        "metadata": {"week": 47},
        "completed_at": None,
    }


def test_withdrawal_reserves_money_queues_a_transfer_and_publishes_an_event(shop: Shop) -> None:
    made = withdrawn(shop)
    assert balance(shop) == (50_000, 100_000)
    order = Transfer.objects.get().order
    assert (order.order_id, order.purpose, order.amount) == (made["withdrawal_id"], "withdrawal", 100_000)
    assert (order.bank_code, order.account, order.account_name) == ("014", ACCOUNT, "สมชาย ใจดี")
    (pending,) = event_data_of(made)
    assert (pending["event"], pending["data"]) == ("withdrawal.pending", made)


def test_both_path_forms_create_the_same_withdrawal(shop: Shop) -> None:
    thai, plain = (
        shop.post(f"{form}/withdrawals", withdrawal_request(amount=100), key="one")
        for form in ("/Thai/v1", "/v1")
    )
    assert thai.content == plain.content
    assert plain["Idempotent-Replayed"] == "true"
    assert Withdrawal.objects.count() == 1


@pytest.mark.slow
def test_bank_code_may_be_a_number_or_a_short_name(shop: Shop) -> None:
    for given in ("014", "scb", "SCB", "Scb"):
        made = withdrawn(shop, bank_code=given, amount=100)
        assert (made["bank_code"], made["bank_name"]) == ("014", "Siam Commercial Bank")


@pytest.mark.slow
def test_withdrawal_over_the_balance_is_refused(shop: Shop) -> None:
    over = shop.post(PATH, withdrawal_request(amount=150_001), key="more")
    assert error_of(over) == (402, "insufficient_funds", None)
    assert over.json()["error"]["type"] == "payment_error"
    assert not Withdrawal.objects.exists()
    assert not Transfer.objects.exists()
    assert not Event.objects.filter(type__startswith="withdrawal.").exists()
    assert shop.post(PATH, withdrawal_request(amount=150_000)).status_code == 200
    assert balance(shop) == (0, 150_000)
    assert shop.post(PATH, withdrawal_request(amount=100)).status_code == 402


@pytest.mark.slow
def test_withdrawal_is_stored_without_invisible_characters(shop: Shop) -> None:
    given = {"bank_account": f" {ACCOUNT}\u200b", "account_name": "\ufeffSomchai  Jaidee "}
    made = shop.post(PATH, withdrawal_request(**given, reference=" W\u200b-1\ufeff")).json()
    assert (made["account_name"], made["reference"]) == ("Somchai Jaidee", "W-1")
    found = shop.get(f"{PATH}?" + urlencode({"reference": "W-1\u200b"})).json()
    assert [each["withdrawal_id"] for each in found["withdrawals"]] == [made["withdrawal_id"]]
    order = Transfer.objects.get()
    assert (order.account, order.account_name) == (ACCOUNT, "Somchai Jaidee")
    assert order.has_its_content()


@pytest.mark.parametrize("bank_code", ["SCB", " scb ", "S\u200bCB", "014"])
@pytest.mark.parametrize("account", ["405-1-23456-7", "405\xa01\xa023456 7", "๔๐๕1234567", "405–1‑23456−7"])
def test_account_is_stored_without_what_people_write_between_its_digits(
    shop: Shop, bank_code: str, account: str
) -> None:
    shop.post(PATH, withdrawal_request(bank_code=bank_code, bank_account=account))
    order = Transfer.objects.get()
    assert (order.bank_code, order.account) == ("014", "4051234567")


INVALID: dict[str, list[Any]] = {
    "amount": [None, 0, -1, 99, 200_000_001, 2**63 - 1, "100000", 100000.5, True, [100_000]],
    "currency": [None, "", "USD", "thb", 764, ["THB"]],
    "bank_code": [None, "", 14, "14", "999", "065", "nobank", "๐๑๔", "014" * 9, ["014"], {}],
    "bank_account": [
        *(None, "", 4051234567, [], "405123456", "40512345678", "4" * 16),
        *(" 051234567", "405123456\n", "๔05123456", "+405123456", "405.123.4567"),
    ],
    "account_name": [None, "", " ", "\t", "a\nb", "a\x7fb", "x" * 141, 7, ["x"]],
    "reference": ["", "x" * 36, 17, ["x"]],
    "metadata": [[], "x", {str(n): n for n in range(51)}, {"x": "x" * 8_192}],
}


@pytest.mark.slow
def test_invalid_withdrawal_field_is_named_and_nothing_is_written(
    shop: Shop, subtests: pytest.Subtests
) -> None:
    for field, value in [(field, value) for field, values in INVALID.items() for value in values]:
        with subtests.test(f"{field}={value!r}"[:40]):
            answer = shop.post(PATH, withdrawal_request(**{field: value}))
            assert error_of(answer) == (400, f"invalid_{field}", field)
            assert answer.json()["error"]["type"] == "validation_error"
            assert ACCOUNT not in answer.content.decode()
    for field in withdrawal_request():
        request = withdrawal_request()
        del request[field]
        assert error_of(shop.post(PATH, request))[1] == f"invalid_{field}"
    assert not Withdrawal.objects.exists()
    assert balance(shop) == (150_000, 0)


def test_first_invalid_withdrawal_field_is_reported(shop: Shop) -> None:
    assert error_of(shop.post(PATH, {}))[1] == "invalid_amount"
    assert error_of(shop.post(PATH, {"amount": 100}))[1] == "invalid_currency"


@pytest.mark.parametrize(("code", "account"), [("030", "123456789012"), ("tisco", "12345678901234")])
@pytest.mark.slow
def test_withdrawal_account_length_depends_on_the_bank(shop: Shop, code: str, account: str) -> None:
    assert withdrawn(shop, bank_code=code, bank_account=account)["bank_account"] == account[-4:]
    too_long = withdrawal_request(bank_code=code, bank_account=account + "00")
    assert shop.post(PATH, too_long).status_code == 400


@pytest.mark.slow
def test_unknown_withdrawal_fields_are_ignored(shop: Shop) -> None:
    made = withdrawn(
        shop, status="succeeded", awaiting_approval=True, merchant_id="mch_x", completed_at="now"
    )
    assert (made["status"], made["completed_at"]) == ("pending", None)
    assert Withdrawal.objects.get().merchant == shop.merchant


def test_live_merchant_without_a_sending_bank_is_refused(db: None) -> None:
    shop = open_shop("Real", mode="live")
    for bank in ("", "scb"):
        Merchant.objects.filter(pk=shop.merchant.pk).update(bank=bank)
        assert error_of(shop.post(PATH, withdrawal_request())) == (400, "bank_not_configured", None)


def test_withdrawal_without_a_sandbox_bank_is_refused(shop: Shop, settings: Settings) -> None:
    settings.SANDBOX_BANK_SECRET = ""
    assert error_of(shop.post(PATH, withdrawal_request()))[1] == "bank_not_configured"


@pytest.mark.slow
def test_withdrawal_account_number_is_sealed(shop: Shop) -> None:
    made = withdrawn(shop)
    row = Withdrawal.objects.values().get()
    assert ACCOUNT not in str(row)
    assert vault.open_sealed(row["account_sealed"], context=made["withdrawal_id"]) == ACCOUNT


@pytest.mark.slow
def test_two_withdrawals_may_have_the_same_reference(shop: Shop) -> None:
    first, second = (withdrawn(shop, amount=100, reference="same") for _ in range(2))
    assert first["withdrawal_id"] != second["withdrawal_id"]
    assert fetch_withdrawal(shop, first) == first
    assert events_of(second) == ["withdrawal.pending"]


@pytest.fixture
def three(shop: Shop, noon: datetime) -> list[str]:
    """Withdrawals of three days. The second is canceled, the third has a reference."""
    made = []
    for day, fields in enumerate([{}, {}, {"reference": "PAYOUT-3"}]):
        with time_machine.travel(noon + timedelta(days=day), tick=False):
            made.append(str(withdrawn(shop, amount=100, **fields)["withdrawal_id"]))
    assert shop.post(f"{PATH}/{made[1]}/cancel").status_code == 200
    return made


@pytest.mark.slow
def test_withdrawals_are_filtered_and_paged(shop: Shop, three: list[str], subtests: pytest.Subtests) -> None:
    for query, found in {
        "": [2, 1, 0],
        "limit=1": [2],
        "limit=1&offset=1": [1],
        "offset=3": [],
        "status=pending": [2, 0],
        "status=canceled": [1],
        "status=succeeded": [],
        "reference=PAYOUT-3": [2],
        "reference=PAYOUT": [],
        "start_date=2026-11-22": [2, 1],
        "end_date=2026-11-22": [1, 0],
        "start_date=2026-11-22&end_date=2026-11-22": [1],
        "start_date=2026-11-22T05:00:00.001Z": [2],
        "status=pending&end_date=2026-11-22": [0],
    }.items():
        with subtests.test(query):
            answer: dict[str, Any] = shop.get(f"{PATH}?{query}").json()
            assert [each["withdrawal_id"] for each in answer["withdrawals"]] == [three[n] for n in found]
            is_paged = "limit" in query or "offset" in query
            assert answer["total"] == (3 if is_paged else len(found))


def test_invalid_withdrawal_filters_are_refused(shop: Shop, subtests: pytest.Subtests) -> None:
    for query in [
        "status=done",
        "status=",
        "status=PENDING",
        "reference=",
        "reference=" + "x" * 36,
        "start_date=yesterday",
        "start_date=2026-11-22&end_date=2026-11-21",
        "limit=0",
        "offset=-1",
    ]:
        with subtests.test(query):
            refused = (400, "invalid_parameters", query.partition("=")[0])
            assert error_of(shop.get(f"{PATH}?{query}")) == refused


def test_unknown_withdrawal_is_not_found(shop: Shop) -> None:
    for given in ("wd_x", "pay_000000000000000000000000000", "wd_000000000000000000000000000"):
        for answer in (shop.get(f"{PATH}/{given}"), shop.post(f"{PATH}/{given}/cancel")):
            assert error_of(answer) == (404, "withdrawal_not_found", None)


@pytest.mark.slow
def test_banks_are_listed_in_thai_and_english_and_can_be_withdrawn_to(shop: Shop) -> None:
    banks = {bank["bank_code"]: bank for bank in shop.get("/Thai/v1/banks").json()["banks"]}
    assert list(banks) == sorted(banks)
    assert banks["014"] == {
        "bank_code": "014",
        "short_name": "SCB",
        "name": "Siam Commercial Bank",
        "name_th": "ธนาคารไทยพาณิชย์",
        "account_digits": {"min": 10, "max": 10},
    }
    for bank in banks.values():
        account = "1" * bank["account_digits"]["max"]
        for name in (bank["bank_code"], bank["short_name"]):
            request = withdrawal_request(bank_code=name, bank_account=account + "1")
            assert error_of(shop.post(PATH, request)) == (400, "invalid_bank_account", "bank_account")
