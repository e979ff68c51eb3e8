"""A bank's word about money that we sent out: a notice, kept and then acted on, or what it told our staff."""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction

from approvals import services as approvals
from approvals.models import Approval, Kind
from banks import OrderNotice, Word
from receipts import acting, inbox, settling
from receipts.acting import NotPossible
from receipts.models import Act, Deed, Verdict
from refunds import services as refunds
from transfers import services as transfers
from transfers.models import Contradiction, State, Transfer
from transfers.services import Owner
from withdrawals import services as withdrawals

# Who is told, by the prefix of the order's id.
OWNERS: dict[str, Owner] = {"ref": refunds.OWNER, "wd": withdrawals.OWNER, "rtn": settling.OWNER}


def accept(*, bank: str, body: bytes, notice: OrderNotice, now: datetime) -> None:
    """Keep the message in one commit and settle what it speaks of in the next.

    What fails after the first is not answered as received, so the bank tells it again.
    """
    verdict = Verdict(transfers.weigh(notice, bank=bank))
    known = notice.order_id if transfers.exists(notice.order_id) else None
    inbox.keep(bank, body, verdict, None, now, order_id=known)
    if verdict == Verdict.NEW:
        transfers.hear(notice, _owner(notice.order_id), now=now)


def conclude(order_ids: Iterable[str], *, now: datetime) -> None:
    """Their bank tells that it has done them, in the caller's transaction."""
    for order_id in order_ids:
        transfers.conclude(order_id, _owner(order_id), now=now)


@transaction.atomic
def settle_by_hand(order_id: str, word: Word, *, by: str, now: datetime) -> bool:
    """End an order whose bank is silent, as it told `by` of staff. Raises transfers' NotOverdue.

    False if a second person must approve it: what never arrived goes back, and the bank may pay it later.
    """
    lock(order_id)
    order = transfers.overdue(order_id, now=now)
    if word.fate == "failed" and (approvals.waits(order_id) or _judge(order, by, now).is_waiting):
        return False
    transfers.settle_by_hand(order_id, word, _owner(order_id), by=by, now=now)
    return True


def end_as_never_arrived(approval: Approval, *, now: datetime) -> None:
    """A second person approved it. Raises approvals.NotDecidable where the bank was told of it once more."""
    order_id, by = approval.subject_id, approval.requested_by.removeprefix("staff:")
    try:
        transfers.settle_by_hand(order_id, transfers.NEVER_ARRIVED, _owner(order_id), by=by, now=now)
    except transfers.NotOverdue:
        raise approvals.NotDecidable("It is over, or was sent again. Reject it.") from None


def lock(order_id: str) -> None:
    """Lock what the order is for, in the order of all locks."""
    _owner(order_id).lock(order_id)


def give_up(order_id: str, *, now: datetime) -> None:
    """End an order that surely never reached its bank. Raises transfers.AlreadyTold for every other."""
    if not transfers.is_unsent(order_id):
        raise transfers.AlreadyTold(order_id)
    prefix, _, _ = order_id.partition("_")
    if prefix == "wd":
        withdrawals.give_up(withdrawal_id=order_id, now=now)
    elif prefix == "ref":
        refunds.give_up(refund_id=order_id, now=now)
    else:
        settling.give_up(return_id=order_id, now=now)


@transaction.atomic
def book_as_returned(contradiction_id: str, *, by: str, why: str, now: datetime) -> Act:
    """The bank never sent what it had reported as sent: whoever it was taken from has the money again.

    A withdrawal's merchant has it at once; the money of a refund or a return waits for staff again. Raises
    NotPossible, AlreadyDone.
    """
    found = Contradiction.objects.get(pk=contradiction_id)
    if not can_be_booked_as_returned(found):
        raise NotPossible("Only what is booked as sent, and failed at the bank, can be booked as returned.")
    try:
        transfers.book_as_returned(found.subject_id, _owner(found.subject_id), by=by, now=now)
    except transfers.NotBookedAsSent:
        raise NotPossible("This order is not booked as sent any more.") from None
    acting.contradiction(contradiction_id)
    return acting.write_down(acting.draft(contradiction_id, Deed.BOOKED_RETURNED, by, why, now))


def can_be_booked_as_returned(found: Contradiction) -> bool:
    return (found.state, found.answer) == (State.SUCCEEDED, "failed")


def _judge(order: Transfer, by: str, now: datetime) -> Approval:
    item = approvals.Outgoing(
        kind=Kind.NEVER_ARRIVED,
        subject_id=order.id,
        merchant_id=order.merchant_id or None,
        amount=order.amount,
        bank_code=order.bank_code,
        account=order.account,
        account_name=order.account_name,
        requested_by=f"staff:{by}",
    )
    return approvals.judge(item, now=now)


def _owner(order_id: str) -> Owner:
    prefix, _, _ = order_id.partition("_")
    return OWNERS[prefix]
