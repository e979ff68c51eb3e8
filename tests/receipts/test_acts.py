"""Staff decide about money that does not fit: the payment, the books and the merchant follow, once."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from pytest_django import Settings

from banks import OrderNotice, Word
from core import clock, rows
from merchants.models import LateMoney, Merchant
from payments import cards
from payments.models import Payment
from receipts import acts
from receipts.acts import AlreadyDone, NotPossible
from receipts.models import Act, Deed, Notice, Receipt
from receipts.orders import OWNERS
from tests import tables
from tests.conftest import Shop
from tests.receipts.cast import WHY, Till, decide, now_of, postings_of, suspense, told_of
from tests.refunds.cast import Counter, carry_out
from tests.transfers.cast import Bank
from transactions.models import Entry
from transfers import services as transfers

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
Serving = Callable[..., Bank]
DONE = Word("succeeded", "b-1")


def rows_of_all() -> dict[str, int]:
    cursor = rows.run("SELECT 1", [])
    return tables.count_rows(cursor, tables.counting(cursor))


def succeeded_with(payment_id: str) -> dict[str, Any]:
    """What the merchant was told; it was told once."""
    (data,) = [data for kind, data in told_of(payment_id) if kind == "payment.succeeded"]
    return data


def came_from(payment_id: str) -> list[str]:
    lines = Entry.objects.filter(journal__fact="payment", journal__subject_id=payment_id, amount__lt=0)
    return list(lines.values_list("account_id", flat=True))


# --- accept ------------------------------------------------------------------------------------------------


def test_late_money_that_is_accepted_makes_its_payment_succeed(till: Till) -> None:
    receipt = till.late()
    payment_id = str(receipt.payment_id)
    assert (till.shop.payment(payment_id)["status"], suspense(), till.balance()) == (
        "pending",
        150_000,
        (0, 0),
    )
    decide("accept", receipt)
    payment = till.shop.payment(payment_id)
    assert (payment["status"], payment["amount_received"]) == ("succeeded", None)
    assert (now_of(receipt), suspense(), till.balance()) == (("late", "accepted"), 0, (150_000, 0))
    assert (came_from(payment_id), "amount_received" in succeeded_with(payment_id)) == (
        ["suspense:sandbox"],
        False,
    )
    act = Act.objects.get()
    assert (act.subject_id, act.deed, act.by, act.why) == (receipt.id, Deed.ACCEPTED, "malee", WHY)
    assert (act.payment_id, act.at) == (payment_id, receipt.resolved_at)


@pytest.mark.parametrize("satang", [1, 149_999, 150_001, 99_999_999])
def test_another_amount_that_is_accepted_is_what_everything_says(
    till: Till, served_by: Serving, satang: int
) -> None:
    served_by(sends=[DONE])
    receipt = till.mismatch(satang)
    payment_id = str(receipt.payment_id)
    decide("accept", receipt)
    for path in ("/Thai/v1/payments", "/v1/payments"):
        shown = till.shop.get(f"{path}/{payment_id}").json()
        assert (shown["status"], shown["amount"], shown["amount_received"]) == ("succeeded", 150_000, satang)
    assert (succeeded_with(payment_id)["amount"], succeeded_with(payment_id)["amount_received"]) == (
        150_000,
        satang,
    )
    assert (till.history("payment"), till.balance()) == ([("succeeded", satang)], (satang, 0))
    assert till.ask(payment_id, amount=satang + 1).json()["error"]["code"] == "refund_amount_exceeded"
    assert till.refund(payment_id)["amount"] == satang
    carry_out()
    assert (till.shop.payment(payment_id)["status"], till.balance()) == ("refunded", (0, 0))


def test_money_that_its_code_does_not_explain_cannot_be_accepted(till: Till) -> None:
    for receipt in (till.unmatched(), till.duplicate(), till.sold()):
        before = rows_of_all(), now_of(receipt)
        with pytest.raises(NotPossible, match="its own payment does not wait"):
            decide("accept", receipt)
        assert (rows_of_all(), now_of(receipt)) == before


def test_another_amount_cannot_be_accepted_once_the_right_one_came(till: Till) -> None:
    code = till.shop.qr_code()
    less = till.told(code, satang=100)
    till.told(code)
    with pytest.raises(NotPossible):
        decide("accept", less)
    assert (now_of(less), till.balance()) == (("amount_mismatch", ""), (150_000, 0))


def test_the_right_amount_after_another_was_accepted_waits(till: Till) -> None:
    code = till.shop.qr_code()
    decide("accept", till.told(code, satang=100))
    assert now_of(till.told(code)) == ("duplicate", "")
    assert (till.balance(), suspense()) == ((100, 0), 150_000)


def test_a_merchant_that_takes_late_money_is_not_asked(till: Till) -> None:
    Merchant.objects.filter(pk=till.shop.merchant.id).update(late_money=LateMoney.ACCEPT)
    late, short = till.late(), till.mismatch()
    assert (now_of(late), now_of(short)) == (("late", "accepted"), ("amount_mismatch", ""))
    assert (till.balance(), suspense()) == ((150_000, 0), 149_900)
    assert succeeded_with(str(late.payment_id))["status"] == "succeeded"
    act = Act.objects.get()
    assert (act.by, act.deed, act.payment_id) == ("policy:late_money", Deed.ACCEPTED, late.payment_id)
    with pytest.raises(AlreadyDone, match="policy:late_money decided already: accepted"):
        decide("accept", late)


# --- attach ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["unmatched", "duplicate", "mismatch", "late"])
def test_money_is_attached_to_the_payment_it_was_meant_for(till: Till, kind: str) -> None:
    receipt: Receipt = getattr(till, kind)()
    before, payment_id = till.balance()[0], till.shop.qr_code(amount=100)["payment_id"]
    decide("attach", receipt, payment_id=payment_id)
    payment = till.shop.payment(payment_id)
    assert (payment["status"], payment["amount_received"]) == ("succeeded", receipt.amount)
    assert (now_of(receipt)[1], receipt.payment_id) == ("attached", payment_id)
    assert (till.balance()[0], suspense()) == (before + receipt.amount, 0)
    assert succeeded_with(payment_id)["amount_received"] == receipt.amount
    assert Payment.objects.get(pk=payment_id).completed_at == receipt.paid_at


def test_money_may_be_meant_for_a_code_that_has_ended_or_for_another_shop(till: Till, rival: Shop) -> None:
    ended = till.shop.qr_code(expiry_minutes=1)["payment_id"]
    theirs = rival.qr_code()["payment_id"]
    with time_machine.travel(clock.now() + timedelta(minutes=5)):
        decide("attach", till.unmatched(), payment_id=ended)
    decide("attach", receipt := till.unmatched(biller_id="000000000000000"), payment_id=theirs)
    assert (till.shop.payment(ended)["status"], rival.payment(theirs)["status"]) == ("succeeded", "succeeded")
    assert receipt.merchant_id is None
    receipt.refresh_from_db()
    assert receipt.merchant_id == rival.merchant.id
    assert (till.balance(), suspense()) == ((150_000, 0), 0)


def test_money_that_was_paid_to_one_shop_is_no_other_shops(till: Till, rival: Shop) -> None:
    receipt = till.unmatched()
    with pytest.raises(NotPossible, match=f"This money was paid to {till.shop.merchant.name}"):
        decide("attach", receipt, payment_id=rival.qr_code()["payment_id"])
    assert (now_of(receipt), suspense()) == (("unmatched", ""), 150_000)


def test_money_attached_to_the_payment_of_its_own_code_is_accepted(till: Till) -> None:
    receipt = till.mismatch()
    decide("attach", receipt, payment_id=receipt.payment_id)
    assert (now_of(receipt)[1], Act.objects.get().deed) == ("accepted", "accepted")


def payment_that(till: Till, rival: Shop, what: str) -> str:
    """The id of a payment that money cannot be attached to."""
    if what == "is by card":
        made = cards.draft(merchant=till.shop.merchant, token_id="tok", amount=150_000, now=clock.now())
        cards.store(made)
        return str(made.payment.id)
    if what == "is of another bank":
        Merchant.objects.filter(pk=rival.merchant.id).update(mode="live", bank="scb")
        return str(rival.qr_code()["payment_id"])
    if what == "is paid":
        return till.paid()
    if what == "has failed":
        code = till.shop.qr_code()
        till.bank.tell(code, type="decline")
        return str(code["payment_id"])
    return "pay_000000000000000000000000000"


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("is by card", "waits for no money by a QR code"),
        ("is of another bank", "of another bank"),
        ("is paid", "waits for no money"),
        ("has failed", "waits for no money"),
        ("is unknown", "There is no payment"),
    ],
)
def test_money_is_not_attached_to_a_payment_that(
    till: Till, rival: Shop, settings: Settings, what: str, why: str
) -> None:
    settings.SANDBOX_ACQUIRER_URL = "http://127.0.0.1:1"  # nobody listens
    receipt, payment_id = till.unmatched(), payment_that(till, rival, what)
    before = rows_of_all()
    with pytest.raises(NotPossible, match=why):
        decide("attach", receipt, payment_id=payment_id)
    assert (rows_of_all(), now_of(receipt), suspense()) == (before, ("unmatched", ""), 150_000)


# --- twice -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deed", "said"),
    [
        ("accept", "accepted"),
        ("attach", "attached"),
        ("send_back", "sent back"),
        ("send_back_by_hand", "sent back by hand"),
    ],
)
def test_a_second_click_is_told_who_was_first_and_changes_nothing(
    till: Till, served_by: Serving, deed: str, said: str
) -> None:
    served_by()
    receipt, more = till.late(), {"payment_id": till.shop.qr_code()["payment_id"]}
    given: dict[str, Any] = {"attach": more, "send_back_by_hand": {"bank_reference": "b"}}
    with time_machine.travel("2026-11-21T05:00:00Z", tick=False):
        decide(deed, receipt, **given.get(deed, {}))
    before = rows_of_all(), now_of(receipt), till.held()
    for again in ("accept", "attach", "send_back", "send_back_by_hand"):
        with pytest.raises(AlreadyDone) as told:
            decide(again, receipt, by="somsak", **given.get(again, {}))
        assert str(told.value) == f"malee decided already: {said}, 21 Nov 2026 12:00."
    with pytest.raises(AlreadyDone):
        decide("dismiss", receipt)
    assert (rows_of_all(), now_of(receipt), till.held()) == before


def test_a_message_is_dismissed_once(till: Till) -> None:
    till.bank.post(b"garbage")
    notice = Notice.objects.get()
    told: dict[str, Any] = {"by": "malee", "why": WHY, "now": clock.now()}
    act = acts.dismiss(notice.id, **told)
    assert (act.deed, act.by) == (Deed.DISMISSED, "malee")
    with pytest.raises(AlreadyDone, match="malee decided already: dismissed"):
        acts.dismiss(notice.id, **told | {"by": "somsak"})
    assert Act.objects.count() == 1


@pytest.mark.parametrize("subject_id", ["ntc_000000000000000000000000000", "nobody", ""])
def test_what_does_not_wait_cannot_be_dismissed(till: Till, subject_id: str) -> None:
    with pytest.raises(NotPossible, match="does not wait"):
        acts.dismiss(subject_id, by="malee", why=WHY, now=clock.now())


def test_a_message_that_was_understood_cannot_be_dismissed(till: Till) -> None:
    till.sold()
    with pytest.raises(NotPossible, match="does not wait"):
        acts.dismiss(Notice.objects.get().id, by="malee", why=WHY, now=clock.now())


# --- a refund that came back -------------------------------------------------------------------------------


def came_back(till: Counter, served_by: Serving) -> str:
    """The id of a refund whose money came back."""
    served_by(sends=[DONE])
    refund_id = str(till.refund(till.paid())["refund_id"])
    carry_out()
    transfers.hear(OrderNotice(refund_id, "returned"), OWNERS["ref"], now=clock.now())
    return refund_id


def test_the_merchant_gets_the_money_of_a_refund_that_came_back_once(till: Till, served_by: Serving) -> None:
    refund_id = came_back(till, served_by)
    assert (suspense(), till.balance()) == (150_000, (0, 0))
    acts.keep(refund_id, by="malee", why=WHY, now=clock.now())
    assert (suspense(), till.balance()) == (0, (150_000, 0))
    with pytest.raises(AlreadyDone, match="malee decided already: kept"):
        acts.keep(refund_id, by="somsak", why=WHY, now=clock.now())
    assert (suspense(), till.balance()) == (0, (150_000, 0))
    assert [fact for fact, _ in postings_of(refund_id)] == [
        "refund_reserved",
        "refund_paid",
        "held",
        "accepted",
    ]


def test_a_refund_whose_money_did_not_come_back_cannot_be_kept(till: Till, served_by: Serving) -> None:
    served_by(sends=[DONE])
    refund_id = till.refund(till.paid())["refund_id"]
    for _ in range(2):
        with pytest.raises(NotPossible, match="has not come back"):
            acts.keep(refund_id, by="malee", why=WHY, now=clock.now())
        carry_out()
    assert till.balance() == (0, 0)


# --- which buttons there are -------------------------------------------------------------------------------

MONEY = frozenset({Deed.ATTACHED, Deed.SENT_BACK, Deed.SENT_BACK_BY_HAND})


def test_what_can_be_done_with_it(till: Till) -> None:
    mine = till.sold()
    cases = [
        (till.late(), MONEY | {Deed.ACCEPTED}),
        (till.mismatch(), MONEY | {Deed.ACCEPTED}),
        (till.unmatched(), MONEY),
        (till.duplicate(), MONEY),
        (mine, frozenset()),
        (till.told(till.shop.qr_code(), type="decline"), frozenset()),
        (
            till.takes_back(mine, transaction_id="NEVERHEARDOFTHAT0000"),
            frozenset({Deed.DISMISSED, Deed.LOST}),
        ),
        (till.takes_back(mine), frozenset()),
    ]
    assert [acts.possible(receipt) for receipt, _ in cases] == [deeds for _, deeds in cases]


def test_a_decline_after_the_money_and_money_after_a_decline_change_no_payment(till: Till) -> None:
    paid, declined = till.shop.qr_code(), till.shop.qr_code()
    till.told(paid)
    assert now_of(till.told(paid, type="decline")) == ("declined", "")
    till.told(declined, type="decline")
    late = till.told(declined)
    assert (now_of(late), acts.possible(late)) == (("duplicate", ""), MONEY)
    assert [till.shop.payment(code["payment_id"])["status"] for code in (paid, declined)] == [
        "succeeded",
        "failed",
    ]
    assert (till.balance(), suspense()) == ((150_000, 0), 150_000)
