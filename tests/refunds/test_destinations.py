"""The destination of a refund: the request's, else the payer's, else the QR code's client, else none yet."""

from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction

from core import clock
from core.database import rows
from ledger import accounts
from payments import services as payments
from payments.models import CardCharge, ChargeState, Payment
from payments.payers import Payer
from payments.services import PaidPayment
from tests.refunds.builders import NOBODY, PAYEE, RefundShop, error_of
from transfers.models import Transfer

REPORTED = Payer("Somchai Jaidee", "014", "1234567890")
CLIENT = {"client_bank_name": "kbank", "client_bank_account": "4051234567", "client_name": "Somying"}
TO_PAYEE = ("004", "4051234567", "สมหญิง ใจดี")
TO_PAYER = ("014", "1234567890", "Somchai Jaidee")
TO_CLIENT = ("004", "4051234567", "Somying")

Account = tuple[str, str, str]
# Payer by the bank, client of the QR code, destination of the request; expected destination.
CASES: dict[str, tuple[Payer, dict[str, Any], dict[str, str] | None, Account | None]] = {
    "the request's account comes first": (REPORTED, CLIENT, PAYEE, TO_PAYEE),
    "a bank by its code": (REPORTED, CLIENT, PAYEE | {"bank_code": "004"}, TO_PAYEE),
    "then the payer's account": (REPORTED, CLIENT, None, TO_PAYER),
    "a payer without a name gets the client's name": (
        replace(REPORTED, name=""),
        CLIENT,
        None,
        ("014", "1234567890", "Somying"),
    ),
    "a payer without any name": (
        replace(REPORTED, name=""),
        {},
        None,
        ("014", "1234567890", "-"),
    ),
    "then the QR code's client": (NOBODY, CLIENT, None, TO_CLIENT),
    "a masked account of the payer is not used": (
        replace(REPORTED, account="xxxxxx7890"),
        CLIENT,
        None,
        TO_CLIENT,
    ),
    "an unknown bank of the payer": (replace(REPORTED, bank_code="999"), CLIENT, None, TO_CLIENT),
    "an account with separators": (
        NOBODY,
        CLIENT | {"client_bank_account": "405-1-23456 7"},
        None,
        TO_CLIENT,
    ),
    "a bank by its other name": (
        NOBODY,
        CLIENT | {"client_bank_name": " TMB "},
        None,
        ("011", "4051234567", "Somying"),
    ),
    "an unknown bank": (NOBODY, CLIENT | {"client_bank_name": "Kasikorn, Asok"}, None, None),
    "an account of the wrong length": (
        NOBODY,
        CLIENT | {"client_bank_account": "405123456"},
        None,
        None,
    ),
    "an account without its bank": (NOBODY, {"client_bank_account": "4051234567"}, None, None),
    "a bank without an account": (NOBODY, {"client_bank_name": "kbank"}, None, None),
    "no account": (NOBODY, {}, None, None),
}


@pytest.mark.parametrize("case", CASES)
def test_first_known_refund_destination_is_chosen(refund_shop: RefundShop, case: str) -> None:
    payer, client, given, expected = CASES[case]
    payment_id = refund_shop.paid(payer=payer, **client)
    refund = refund_shop.refund(payment_id, **{"destination": given} if given else {})
    order = Transfer.objects.filter(pk=refund["refund_id"]).first()
    if expected is None:
        assert (order, refund["pending_reason"]) == (None, "awaiting_destination")
    else:
        assert refund["pending_reason"] == "processing"
        assert order is not None
        assert (order.bank_code, order.account, order.account_name) == expected
        assert (order.route, order.purpose, order.amount) == ("bank:sandbox", "refund", 150_000)


@pytest.mark.slow
def test_waiting_refund_gets_a_destination(refund_shop: RefundShop) -> None:
    refund = refund_shop.refund(refund_shop.paid(payer=NOBODY))
    assert refund_shop.balance() == (0, 150_000)
    answer = refund_shop.act(refund, "destination", PAYEE)
    assert answer.status_code == 200
    addressed = answer.json()
    assert addressed == refund | {"pending_reason": "processing", "updated_at": addressed["updated_at"]}
    assert refund_shop.read(refund) == addressed
    assert Transfer.objects.get().account == PAYEE["bank_account"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bank_code", "999"),
        ("bank_code", 4),
        ("bank_account", "405123456789"),
        ("bank_account", "405123456x"),
        ("bank_account", 4051234567),
        ("account_name", ""),
        ("account_name", "one\ntwo"),
    ],
)
@pytest.mark.slow
def test_invalid_refund_destination_is_refused(refund_shop: RefundShop, field: str, value: Any) -> None:
    refund = refund_shop.refund(refund_shop.paid(payer=NOBODY))
    answer = refund_shop.act(refund, "destination", PAYEE | {field: value})
    assert error_of(answer) == (400, f"invalid_{field}", field)
    assert refund_shop.read(refund) == refund


@pytest.mark.slow
def test_refund_with_destination_gets_no_other_destination(refund_shop: RefundShop) -> None:
    refund = refund_shop.refund(refund_shop.paid())
    assert error_of(refund_shop.act(refund, "destination", PAYEE)) == (400, "refund_not_addressable", None)
    canceled = refund_shop.refund(refund_shop.paid(payer=NOBODY))
    assert refund_shop.act(canceled, "cancel").status_code == 200
    assert error_of(refund_shop.act(canceled, "destination", PAYEE)) == (400, "refund_not_addressable", None)


# --- cards --------------------------------------------------------------------------------------------


@pytest.fixture
def by_card(refund_shop: RefundShop, served_by: Any) -> str:
    """A payment by card that succeeded."""
    served_by()
    now = clock.now()
    payment_id = Payment.new_id(now)
    payment = payments.draft(
        payment_id, merchant=refund_shop.shop.merchant, amount=150_000, created_at=now, card_last4="4242"
    )
    charge = CardCharge(
        payment=payment,
        acquirer="sandbox",
        charge_id="chrg_1",
        state=ChargeState.COMPLETED,
        due_at=now,
        created_at=now,
        completed_at=now,
    )
    rows.insert_together([payment, charge])
    with transaction.atomic():
        paid = PaidPayment(Payment.objects.locked(payment_id), now, NOBODY)
        payments.succeed([paid], source=accounts.bank("sandbox"), now=now)
    return payment_id


def test_card_payment_is_refunded_to_the_same_card(refund_shop: RefundShop, by_card: str) -> None:
    refund = refund_shop.refund(by_card)
    assert refund["pending_reason"] == "processing"
    order = Transfer.objects.get(pk=refund["refund_id"]).order
    assert (order.charge_id, order.bank_code, order.account) == ("chrg_1", "", "")


def test_refund_of_a_card_payment_takes_no_destination(refund_shop: RefundShop, by_card: str) -> None:
    assert error_of(refund_shop.ask(by_card, destination=PAYEE)) == (
        400,
        "invalid_destination",
        "destination",
    )


@pytest.mark.parametrize(
    ("destination", "detail"),
    [
        ({}, "bank_code is required"),
        (PAYEE | {"bank_account": "12"}, "bank_account must have at least 10 characters"),
        ("KBANK", "must be a JSON object"),
    ],
)
def test_invalid_destination_error_names_the_field(
    refund_shop: RefundShop, destination: Any, detail: str
) -> None:
    answer = refund_shop.ask(refund_shop.paid(), destination=destination)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_destination", "destination")
    assert error["detail"] == detail
