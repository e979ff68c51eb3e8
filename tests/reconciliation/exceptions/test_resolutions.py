"""Resolutions of held money change the payment, the ledger and the merchant's events once."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from pytest_django import Settings

from audit_trail.acts import ActRefused
from banks import ReportedTransfer, TransferResult
from core import clock
from ledger.models import Entry
from merchants.models import LateMoneyPolicy, Merchant
from payments import cards
from payments.models import Payment
from reconciliation.exceptions import resolutions
from reconciliation.exceptions.resolution_records import AlreadyResolved
from reconciliation.matching.order_completion import HANDLERS
from reconciliation.models import BankNotification, BankTransaction, Resolution, ResolutionType
from tests import tables
from tests.conftest import Shop
from tests.reconciliation.builders import NOTE, Seller, decide, events_of, postings_of, state_of, suspense
from tests.refunds.builders import RefundShop, send_due_refunds
from tests.transfers.builders import Bank
from transfers import services as transfers

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
Serving = Callable[..., Bank]
DONE = TransferResult("succeeded", "b-1")


def succeeded_with(payment_id: str) -> dict[str, Any]:
    """Return the data of the only payment.succeeded event."""
    (data,) = [data for kind, data in events_of(payment_id) if kind == "payment.succeeded"]
    return data


def source_accounts(payment_id: str) -> list[str]:
    lines = Entry.objects.filter(journal__type="payment", journal__subject_id=payment_id, amount__lt=0)
    return list(lines.values_list("account_id", flat=True))


# --- accept ------------------------------------------------------------------------------------------------


def test_accepted_late_money_makes_the_payment_succeed(seller: Seller) -> None:
    bank_transaction = seller.late()
    payment_id = str(bank_transaction.payment_id)
    assert (seller.shop.payment(payment_id)["status"], suspense()) == ("pending", 150_000)
    assert seller.balance() == (0, 0)
    decide("accept", bank_transaction)
    payment = seller.shop.payment(payment_id)
    assert (payment["status"], payment["amount_received"]) == ("succeeded", None)
    assert (state_of(bank_transaction), suspense(), seller.balance()) == (
        ("late", "accepted"),
        0,
        (150_000, 0),
    )
    assert source_accounts(payment_id) == ["suspense:sandbox"]
    assert "amount_received" not in succeeded_with(payment_id)
    resolution = Resolution.objects.get()
    assert (resolution.subject_id, resolution.type) == (bank_transaction.id, ResolutionType.ACCEPTED)
    assert (resolution.actor, resolution.note) == ("staff:malee", NOTE)
    assert (resolution.payment_id, resolution.created_at) == (payment_id, bank_transaction.resolved_at)


@pytest.mark.parametrize("satang", [1, 149_999, 150_001, 99_999_999])
def test_accepted_wrong_amount_is_shown_everywhere(seller: Seller, served_by: Serving, satang: int) -> None:
    served_by(sends=[DONE])
    bank_transaction = seller.mismatch(satang)
    payment_id = str(bank_transaction.payment_id)
    decide("accept", bank_transaction)
    for path in ("/Thai/v1/payments", "/v1/payments"):
        shown = seller.shop.get(f"{path}/{payment_id}").json()
        assert (shown["status"], shown["amount"], shown["amount_received"]) == ("succeeded", 150_000, satang)
    assert succeeded_with(payment_id)["amount"] == 150_000
    assert succeeded_with(payment_id)["amount_received"] == satang
    assert (seller.history("payment"), seller.balance()) == ([("succeeded", satang)], (satang, 0))
    assert seller.ask(payment_id, amount=satang + 1).json()["error"]["code"] == "refund_amount_exceeded"
    assert seller.refund(payment_id)["amount"] == satang
    send_due_refunds()
    assert (seller.shop.payment(payment_id)["status"], seller.balance()) == ("refunded", (0, 0))


def test_unmatched_and_duplicate_money_cannot_be_accepted(seller: Seller) -> None:
    for bank_transaction in (seller.unmatched(), seller.duplicate(), seller.sale()):
        before = tables.count_rows(), state_of(bank_transaction)
        with pytest.raises(ActRefused, match="its payment is not waiting"):
            decide("accept", bank_transaction)
        assert (tables.count_rows(), state_of(bank_transaction)) == before


def test_wrong_amount_cannot_be_accepted_after_the_correct_one(seller: Seller) -> None:
    code = seller.shop.qr_code()
    less = seller.report(code, satang=100)
    seller.report(code)
    with pytest.raises(ActRefused):
        decide("accept", less)
    assert (state_of(less), seller.balance()) == (("amount_mismatch", ""), (150_000, 0))


def test_correct_amount_after_an_accepted_wrong_one_is_a_duplicate(seller: Seller) -> None:
    code = seller.shop.qr_code()
    decide("accept", seller.report(code, satang=100))
    assert state_of(seller.report(code)) == ("duplicate", "")
    assert (seller.balance(), suspense()) == ((100, 0), 150_000)


def test_late_money_policy_accepts_late_money_automatically(seller: Seller) -> None:
    Merchant.objects.filter(pk=seller.shop.merchant.id).update(late_money=LateMoneyPolicy.ACCEPT)
    late, short = seller.late(), seller.mismatch()
    assert (state_of(late), state_of(short)) == (("late", "accepted"), ("amount_mismatch", ""))
    assert (seller.balance(), suspense()) == ((150_000, 0), 149_900)
    assert succeeded_with(str(late.payment_id))["status"] == "succeeded"
    resolution = Resolution.objects.get()
    assert (resolution.actor, resolution.type) == ("policy:late_money", ResolutionType.ACCEPTED)
    assert resolution.payment_id == late.payment_id
    with pytest.raises(AlreadyResolved, match="policy:late_money has already resolved this: accepted"):
        decide("accept", late)


# --- attach ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["unmatched", "duplicate", "mismatch", "late"])
def test_staff_attach_money_to_another_payment(seller: Seller, kind: str) -> None:
    bank_transaction: BankTransaction = getattr(seller, kind)()
    before, payment_id = seller.balance()[0], seller.shop.qr_code(amount=100)["payment_id"]
    decide("attach", bank_transaction, payment_id=payment_id)
    payment = seller.shop.payment(payment_id)
    assert (payment["status"], payment["amount_received"]) == ("succeeded", bank_transaction.amount)
    assert (state_of(bank_transaction)[1], bank_transaction.payment_id) == ("attached", payment_id)
    assert (seller.balance()[0], suspense()) == (before + bank_transaction.amount, 0)
    assert succeeded_with(payment_id)["amount_received"] == bank_transaction.amount
    assert Payment.objects.get(pk=payment_id).completed_at == bank_transaction.paid_at


def test_money_can_be_attached_to_an_expired_code_or_another_merchant(
    seller: Seller, other_shop: Shop
) -> None:
    ended = seller.shop.qr_code(expiry_minutes=1)["payment_id"]
    theirs = other_shop.qr_code()["payment_id"]
    with time_machine.travel(clock.now() + timedelta(minutes=5)):
        decide("attach", seller.unmatched(), payment_id=ended)
    decide("attach", bank_transaction := seller.unmatched(biller_id="000000000000000"), payment_id=theirs)
    assert seller.shop.payment(ended)["status"] == "succeeded"
    assert other_shop.payment(theirs)["status"] == "succeeded"
    assert bank_transaction.merchant_id is None
    bank_transaction.refresh_from_db()
    assert bank_transaction.merchant_id == other_shop.merchant.id
    assert (seller.balance(), suspense()) == ((150_000, 0), 0)


def test_money_paid_to_one_merchant_cannot_be_attached_to_another(seller: Seller, other_shop: Shop) -> None:
    bank_transaction = seller.unmatched()
    with pytest.raises(ActRefused, match=f"This money was paid to {seller.shop.merchant.name}"):
        decide("attach", bank_transaction, payment_id=other_shop.qr_code()["payment_id"])
    assert (state_of(bank_transaction), suspense()) == (("unmatched", ""), 150_000)


def test_money_attached_to_the_matched_payment_is_recorded_as_accepted(seller: Seller) -> None:
    bank_transaction = seller.mismatch()
    decide("attach", bank_transaction, payment_id=bank_transaction.payment_id)
    assert (state_of(bank_transaction)[1], Resolution.objects.get().type) == ("accepted", "accepted")


def payment_that(seller: Seller, rival: Shop, what: str) -> str:
    """Return the id of a payment that money cannot be attached to."""
    if what == "is by card":
        made = cards.draft(merchant=seller.shop.merchant, token_id="tok", amount=150_000, now=clock.now())
        cards.store(made)
        return str(made.payment.id)
    if what == "is of another bank":
        Merchant.objects.filter(pk=rival.merchant.id).update(mode="live", bank="scb")
        return str(rival.qr_code()["payment_id"])
    if what == "is paid":
        return seller.paid()
    if what == "has failed":
        code = seller.shop.qr_code()
        seller.bank.notify(code, type="decline")
        return str(code["payment_id"])
    return "pay_000000000000000000000000000"


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("is by card", "is not waiting for a QR payment"),
        ("is of another bank", "of another bank"),
        ("is paid", "is not waiting for"),
        ("has failed", "is not waiting for"),
        ("is unknown", "There is no payment"),
    ],
)
def test_attach_is_refused_unless_the_payment_waits_for_qr_money_of_the_bank(
    seller: Seller, other_shop: Shop, settings: Settings, what: str, why: str
) -> None:
    settings.SANDBOX_ACQUIRER_URL = "http://127.0.0.1:1"  # nobody listens
    bank_transaction, payment_id = seller.unmatched(), payment_that(seller, other_shop, what)
    before = tables.count_rows()
    with pytest.raises(ActRefused, match=why):
        decide("attach", bank_transaction, payment_id=payment_id)
    assert (tables.count_rows(), state_of(bank_transaction), suspense()) == (
        before,
        ("unmatched", ""),
        150_000,
    )


# --- twice -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "label"),
    [
        ("accept", "accepted"),
        ("attach", "attached"),
        ("send_back", "sent back"),
        ("record_manual_return", "sent back by hand"),
    ],
)
def test_second_resolution_is_refused_and_names_the_first_user(
    seller: Seller, served_by: Serving, action: str, label: str
) -> None:
    served_by()
    bank_transaction, more = seller.late(), {"payment_id": seller.shop.qr_code()["payment_id"]}
    given: dict[str, Any] = {"attach": more, "record_manual_return": {"bank_reference": "b"}}
    with time_machine.travel("2026-11-21T05:00:00Z", tick=False):
        decide(action, bank_transaction, **given.get(action, {}))
    before = tables.count_rows(), state_of(bank_transaction), seller.funds()
    for again in ("accept", "attach", "send_back", "record_manual_return"):
        with pytest.raises(AlreadyResolved) as refused:
            decide(again, bank_transaction, actor="staff:somsak", **given.get(again, {}))
        assert str(refused.value) == f"malee has already resolved this: {label}, 2026-11-21 12:00:00."
    with pytest.raises(AlreadyResolved):
        decide("dismiss", bank_transaction)
    assert (tables.count_rows(), state_of(bank_transaction), seller.funds()) == before


def test_bank_message_is_dismissed_only_once(seller: Seller) -> None:
    seller.bank.post(b"garbage")
    notification = BankNotification.objects.get()
    resolution = decide("dismiss", notification)
    assert (resolution.type, resolution.actor) == (ResolutionType.DISMISSED, "staff:malee")
    with pytest.raises(AlreadyResolved, match="malee has already resolved this: dismissed"):
        decide("dismiss", notification, actor="staff:somsak")
    assert Resolution.objects.count() == 1


@pytest.mark.parametrize("subject_id", ["ntf_000000000000000000000000000", "nobody", ""])
def test_unknown_bank_message_cannot_be_dismissed(seller: Seller, subject_id: str) -> None:
    with pytest.raises(ActRefused, match="not an open exception"):
        decide("dismiss", subject_id)


def test_readable_bank_message_cannot_be_dismissed(seller: Seller) -> None:
    seller.sale()
    with pytest.raises(ActRefused, match="not an open exception"):
        decide("dismiss", BankNotification.objects.get().id)


# --- a refund that came back -------------------------------------------------------------------------------


def returned_refund(seller: RefundShop, served_by: Serving) -> str:
    """Return the id of a refund that the bank returned."""
    served_by(sends=[DONE])
    refund_id = str(seller.refund(seller.paid())["refund_id"])
    send_due_refunds()
    transfers.apply_notification(ReportedTransfer(refund_id, "returned"), HANDLERS["ref"], now=clock.now())
    return refund_id


def test_returned_refund_is_credited_to_the_merchant_once(seller: Seller, served_by: Serving) -> None:
    refund_id = returned_refund(seller, served_by)
    assert (suspense(), seller.balance()) == (150_000, (0, 0))
    decide("credit_returned_refund", refund_id)
    assert (suspense(), seller.balance()) == (0, (150_000, 0))
    with pytest.raises(AlreadyResolved, match="malee has already resolved this: kept"):
        decide("credit_returned_refund", refund_id, actor="staff:somsak")
    assert (suspense(), seller.balance()) == (0, (150_000, 0))
    assert [fact for fact, _ in postings_of(refund_id)] == [
        "refund_reserved",
        "refund_paid",
        "held",
        "accepted",
    ]


def test_refund_that_was_not_returned_cannot_be_credited(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[DONE])
    refund_id = seller.refund(seller.paid())["refund_id"]
    for _ in range(2):
        with pytest.raises(ActRefused, match="has not returned the money"):
            decide("credit_returned_refund", refund_id)
        send_due_refunds()
    assert seller.balance() == (0, 0)


# --- which buttons there are -------------------------------------------------------------------------------

MONEY = frozenset({ResolutionType.ATTACHED, ResolutionType.SENT_BACK, ResolutionType.SENT_BACK_BY_HAND})


def test_allowed_resolution_types_per_match_result(seller: Seller) -> None:
    mine = seller.sale()
    cases = [
        (seller.late(), MONEY | {ResolutionType.ACCEPTED}),
        (seller.mismatch(), MONEY | {ResolutionType.ACCEPTED}),
        (seller.unmatched(), MONEY | {ResolutionType.ACQUIRER}),
        (seller.duplicate(), MONEY),
        (mine, frozenset()),
        (seller.report(seller.shop.qr_code(), type="decline"), frozenset()),
        (
            seller.reverse(mine, transaction_id="NEVERHEARDOFTHAT0000"),
            frozenset({ResolutionType.DISMISSED, ResolutionType.WRITTEN_OFF}),
        ),
        (seller.reverse(mine), frozenset()),
    ]
    assert [resolutions.allowed_types(bank_transaction) for bank_transaction, _ in cases] == [
        actions for _, actions in cases
    ]


def test_decline_after_payment_and_payment_after_decline_change_nothing(seller: Seller) -> None:
    paid, declined = seller.shop.qr_code(), seller.shop.qr_code()
    seller.report(paid)
    assert state_of(seller.report(paid, type="decline")) == ("declined", "")
    seller.report(declined, type="decline")
    late = seller.report(declined)
    assert (state_of(late), resolutions.allowed_types(late)) == (("duplicate", ""), MONEY)
    assert [seller.shop.payment(code["payment_id"])["status"] for code in (paid, declined)] == [
        "succeeded",
        "failed",
    ]
    assert (seller.balance(), suspense()) == ((150_000, 0), 150_000)
