"""What staff can do about an exception: what they are told will happen, and the service that does it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Model

from core import ids, money, vault
from payments.models import Payment
from receipts import acting, acts, charges, confirming, orders, returns
from receipts.act_forms import AccountForm, AttachForm, ByHandForm, WhyForm
from receipts.case_page import bank_named
from receipts.cases import Case, Subject
from receipts.models import Act, Deed, Notice, Receipt, Resolution, Verdict
from refunds.models import Refund
from transfers.models import Contradiction

Filled = Mapping[str, Any]
RESOLVE, CONFIRM = "receipts.resolve_receipt", "receipts.confirm_receipt"


@dataclass(frozen=True, slots=True)
class Way:
    """One button. done: said afterwards. says: what will happen, by what is filled in. do: the service.

    permission: of staff who may use it.
    """

    slug: str
    label: str
    done: str
    deed: Deed
    form: type[WhyForm]
    says: Callable[[Case, Filled], str]
    do: Callable[..., object]
    asks_again: bool = False
    permission: str = RESOLVE


def _accept_says(case: Case, filled: Filled) -> str:
    receipt = _receipt(case)
    assert receipt.payment is not None, "acts.possible says so"
    return _succeeds(receipt, receipt.payment)


def _attach_says(case: Case, filled: Filled) -> str:
    given, payment = filled.get("payment"), None
    if ids.looks_right(given, "pay_"):
        payment = Payment.objects.filter(pk=given).select_related("merchant").first()
    if payment is None:
        raise acts.NotPossible("There is no payment of this id.")
    if payment.status not in acts.PAYABLE:
        raise acts.NotPossible(f"Payment {payment.id} is {payment.status}: it waits for no money.")
    return _succeeds(_receipt(case), payment)


def _succeeds(receipt: Receipt, payment: Payment) -> str:
    came = money.display(receipt.amount)
    if receipt.amount == payment.amount:
        return (
            f"Payment {payment.id} of {payment.merchant.name} succeeds with this {came}, "
            "the merchant is told, and the money is added to its balance."
        )
    return (
        f"Payment {payment.id} of {payment.merchant.name} asked for {money.display(payment.amount)}. "
        f"It succeeds with the {came} that came in: the merchant is told so, and its balance grows by them."
    )


def _send_back_says(case: Case, filled: Filled) -> str:
    receipt = _receipt(case)
    to = returns.way_back(receipt)
    if to.transaction_id:
        return f"{bank_named(receipt.bank)} takes the payment back, as long as its day is not over."
    account = f"{vault.masked(to.account)} at {bank_named(to.bank_code)}"
    return f"{money.display(receipt.amount)} go back to the payer, {to.account_name}, account {account}."


def _send_to_says(case: Case, filled: Filled) -> str:
    amount = money.display(_receipt(case).amount)
    if not filled.get("bank_account"):
        return f"{amount} go to the account that you name here. You see it once more before the money goes."
    account = f"{filled['bank_account']} at {bank_named(filled['bank_code'])}"
    return f"{amount} go to {filled['account_name']}, account {account}. Nobody can call them back."


def _by_hand_says(case: Case, filled: Filled) -> str:
    amount = money.display(_receipt(case).amount)
    return f"You have sent {amount} back at the bank yourself: nothing is ordered, only noted."


def _dismiss_says(case: Case, filled: Filled) -> str:
    return "It leaves the list of exceptions. No money moves, and the record is kept."


def _merge_says(case: Case, filled: Filled) -> str:
    receipt, other = _receipt(case), case.same_as
    assert other is not None, "acts.possible says so"
    return (
        f"The bank has told you that this and {other.id} are one transaction. It is counted once: the "
        f"{money.display(receipt.amount)} leave suspense, nothing is sent, and {other.id} stays as it is. "
        "Open it again if the bank proves later that there are two."
    )


def _lose_says(case: Case, filled: Filled) -> str:
    receipt = _receipt(case)
    return (
        f"{money.display(receipt.amount)} have left our account at {receipt.bank} a second time, as the bank "
        "told you when you asked: they are booked as our loss, and no merchant is charged. "
        "If they can be taken after all, the loss ends."
    )


def _reopen_says(case: Case, filled: Filled) -> str:
    subject = case.subject
    if isinstance(subject, Receipt) and subject.resolution == Resolution.LOST:
        return (
            f"The loss of {money.display(subject.amount)} is taken back out of the books, and it waits for a "
            "decision again. What was decided before stays written down."
        )
    if isinstance(subject, Receipt) and subject.resolution == Resolution.MERGED:
        return (
            f"There are two transactions after all: {money.display(subject.amount)} wait in suspense again "
            "for a decision. What was decided before stays written down."
        )
    return "It waits for a decision again. What was decided before stays written down."


def _confirm_says(case: Case, filled: Filled) -> str:
    receipt = _receipt(case)
    return (
        f"You have seen {money.display(receipt.amount)} on the account at {receipt.bank} yourself, in its "
        "online banking or by asking the bank. The statement that reports them was uploaded by "
        f"{confirming.uploader_of(receipt)}. From then on the money can be withdrawn, refunded and sent back."
    )


def _keep_says(case: Case, filled: Filled) -> str:
    assert isinstance(case.subject, Refund)
    refund = case.subject
    amount = money.display(refund.amount)
    return (
        f"The {amount} that came back are added to the balance of {refund.merchant.name}. "
        "The refund stays completed and returned; the merchant may pay its customer in another way."
    )


def _returned_says(case: Case, filled: Filled) -> str:
    assert isinstance(case.subject, Contradiction)
    amount, order_id = money.display(case.subject.amount), case.subject.subject_id
    if order_id.startswith("wd_"):
        return f"Withdrawal {order_id} fails, and the merchant has the {amount} again."
    return f"The {amount} of {order_id} came back: the money waits for a decision again."


def _failed_says(case: Case, filled: Filled) -> str:
    assert isinstance(case.subject, Contradiction)
    return (
        f"You have refunded the charge at {case.subject.route.partition(':')[2]} yourself. Payment "
        f"{case.subject.subject_id} fails, and the merchant is told. No money moves here."
    )


def _receipt(case: Case) -> Receipt:
    assert isinstance(case.subject, Receipt)
    return case.subject


def _attach(subject_id: str, filled: Filled, by: str, now: datetime) -> object:
    return acts.attach(subject_id, payment_id=filled["payment"], by=by, why=filled["why"], now=now)


def _send_back(subject_id: str, filled: Filled, by: str, now: datetime) -> object:
    return acts.send_back(subject_id, by=by, why=filled["why"], now=now)


def _send_to(subject_id: str, filled: Filled, by: str, now: datetime) -> object:
    to = acts.Destination(filled["bank_code"], filled["bank_account"], filled["account_name"])
    return acts.send_back(subject_id, destination=to, by=by, why=filled["why"], now=now)


def _by_hand(subject_id: str, filled: Filled, by: str, now: datetime) -> object:
    reference = filled["bank_reference"]
    return acts.send_back_by_hand(subject_id, bank_reference=reference, by=by, why=filled["why"], now=now)


def _plainly(act: Callable[..., object]) -> Callable[..., object]:
    """An act that needs nothing but a reason."""

    def do(subject_id: str, filled: Filled, by: str, now: datetime) -> object:
        return act(subject_id, by=by, why=filled["why"], now=now)

    return do


WAYS = [
    Way("accept", "Accept", "Accepted", Deed.ACCEPTED, WhyForm, _accept_says, _plainly(acts.accept)),
    Way("attach", "Attach to this payment", "Attached", Deed.ATTACHED, AttachForm, _attach_says, _attach),
    Way("send-back", "Send back", "On its way back", Deed.SENT_BACK, WhyForm, _send_back_says, _send_back),
    Way(
        "send-to",
        "Send to another account",
        "On its way",
        Deed.SENT_BACK,
        AccountForm,
        _send_to_says,
        _send_to,
        True,
    ),
    Way("by-hand", "Sent back by hand", "Noted", Deed.SENT_BACK_BY_HAND, ByHandForm, _by_hand_says, _by_hand),
    Way("merge", "Count once", "Counted once", Deed.MERGED, WhyForm, _merge_says, _plainly(acts.merge)),
    Way("dismiss", "Dismiss", "Dismissed", Deed.DISMISSED, WhyForm, _dismiss_says, _plainly(acts.dismiss)),
    Way("lose", "Book as our loss", "Booked", Deed.LOST, WhyForm, _lose_says, _plainly(acts.lose)),
    Way("keep", "Give it to the merchant", "Given", Deed.KEPT, WhyForm, _keep_says, _plainly(acts.keep)),
    Way(
        "confirm",
        "Confirm that the bank has it",
        "Confirmed",
        Deed.CONFIRMED,
        WhyForm,
        _confirm_says,
        _plainly(acts.confirm),
        permission=CONFIRM,
    ),
    Way(
        "returned",
        "Book as returned",
        "Booked",
        Deed.BOOKED_RETURNED,
        WhyForm,
        _returned_says,
        _plainly(orders.book_as_returned),
    ),
    Way(
        "failed",
        "Book as failed",
        "Booked",
        Deed.BOOKED_FAILED,
        WhyForm,
        _failed_says,
        _plainly(charges.book_as_failed),
    ),
    Way("reopen", "Open again", "Opened", Deed.REOPENED, WhyForm, _reopen_says, _plainly(acts.reopen)),
]
BY_SLUG = {way.slug: way for way in WAYS}
# What is not named here is about money.
SUBJECTS: dict[Deed, tuple[type[Model], ...]] = {
    Deed.DISMISSED: (Receipt, Notice, Contradiction),
    Deed.REOPENED: (Receipt, Notice, Contradiction),
    Deed.BOOKED_RETURNED: (Contradiction,),
    Deed.BOOKED_FAILED: (Contradiction,),
    Deed.KEPT: (Refund,),
}


def find(slug: str, case: Case) -> Way | None:
    """What can be done about such a subject, now or at another time."""
    way = BY_SLUG.get(slug)
    return way if way and isinstance(case.subject, SUBJECTS.get(way.deed, (Receipt,))) else None


def possible(case: Case) -> list[Way]:
    """What can be done now."""
    deeds = _deeds(case.subject)
    return [way for way in WAYS if way.deed in deeds and _fits(way, case)]


def says(case: Case, way: Way, filled: Filled) -> str:
    """What will happen, before it does. Raises acts.NotPossible."""
    if way not in possible(case):
        raise acts.NotPossible(f"“{way.label}” is not possible, or not any more.")
    return way.says(case, filled)


def _deeds(subject: Subject) -> frozenset[Deed]:
    if isinstance(subject, Receipt):
        return acts.possible(subject)
    last = acting.last(subject.pk)
    if isinstance(subject, Contradiction):
        return _of_contradiction(subject, last)
    if isinstance(subject, Notice):
        return _of_message(subject, is_dismissed=last is not None and last.deed == Deed.DISMISSED)
    return frozenset([Deed.KEPT]) if subject.returned_at and last is None else frozenset()


def _of_message(notice: Notice, *, is_dismissed: bool) -> frozenset[Deed]:
    if notice.verdict not in (Verdict.CONFLICT, Verdict.UNREADABLE, Verdict.UNSIGNED):
        return frozenset()
    return frozenset([Deed.REOPENED if is_dismissed else Deed.DISMISSED])


def _of_contradiction(found: Contradiction, last: Act | None) -> frozenset[Deed]:
    if last is None or last.deed == Deed.REOPENED:
        if charges.is_pending(found):
            return frozenset([Deed.BOOKED_FAILED])
        deeds = {Deed.DISMISSED}
        return frozenset(deeds | {Deed.BOOKED_RETURNED} if orders.can_be_booked_as_returned(found) else deeds)
    return frozenset([Deed.REOPENED] if last.deed == Deed.DISMISSED else [])


def _fits(way: Way, case: Case) -> bool:
    """Whether the bank can send it there, to the payer or to any account."""
    if way.deed != Deed.SENT_BACK:
        return True
    receipt = _receipt(case)
    try:
        to = returns.way_back(receipt) if way.slug == "send-back" else acts.Destination()
        returns.check_sender(receipt, to)
    except (returns.NoSender, returns.NoDestination):
        return False
    return True
