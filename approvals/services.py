"""Approval of outgoing money: above the limits a second person must approve it.

Lock order: the subject's rows, then the merchant's limits or the approval, then the accounts of the ledger.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, Self

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from approvals.models import Approval, ApprovalKind, ApprovalReason, ApprovalStatus
from audit_trail.acts import ActRefused
from banks import TransferOrder
from core import ids, request_context
from core.database import rows
from core.database.state_machines import transition_all
from core.errors import ApiError
from core.observing import security_log
from core.observing.security_log import SecurityEvent
from merchants.models import ApiKey
from webhooks import events
from webhooks.models import StaffEventType

LOCK_LIMITS = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


class NotDecidable(ActRefused):
    """This decision is not possible."""


@dataclass(frozen=True, slots=True)
class OutgoingMoney:
    """Money to send out. amount: satang. note: the text of the requester."""

    kind: ApprovalKind
    subject_id: str
    merchant_id: str | None
    amount: int
    bank_code: str = ""
    account: str = field(default="", repr=False)
    account_name: str = ""
    account_digest: str = ""
    note: str = ""

    @classmethod
    def of(
        cls,
        order: TransferOrder,
        kind: ApprovalKind,
        merchant_id: str | None,
        *,
        account_digest: str,
        note: str = "",
    ) -> Self:
        """The money that this order is to send. account_digest: of its transfer."""
        account = order.bank_code, order.account, order.account_name, account_digest
        return cls(kind, order.order_id, merchant_id, order.amount, *account, note=note)


class ApprovalHandler(Protocol):
    """What one kind of outgoing money does in the commit of a decision."""

    def lock(self, subject_id: str, /) -> object:
        """Lock the subject's rows. The approval is locked after them."""

    def approve(self, approval: Approval, *, now: datetime) -> None:
        """Release the money. Raises NotDecidable if that is no longer possible."""

    def reject(self, approval: Approval, *, now: datetime) -> None:
        """End the subject."""


@contextmanager
def as_not_decidable() -> Iterator[None]:
    """Turn an API error, such as that of a removed payout account, into NotDecidable."""
    try:
        yield
    except ApiError as refusal:
        raise NotDecidable(_("%(refusal)s Reject it.") % {"refusal": refusal.translated}) from None


def lock_limits(merchant_id: str | None) -> None:
    """Take the lock of `request` early, for a caller that posts to the ledger before it."""
    rows.run(LOCK_LIMITS, [f"outgoing {merchant_id or ''}"])


def request(item: OutgoingMoney, *, now: datetime) -> Approval:
    """Store an approval, which waits for a second person above the limits. In the caller's transaction.

    A lock per merchant makes simultaneous requests count each other. The caller holds the subject's locks.
    It locks accounts of the ledger later, or it has called `lock_limits` before them.
    """
    return request_together([item], now=now)[0]


def request_together(items: Sequence[OutgoingMoney], *, now: datetime) -> list[Approval]:
    """Do what `request` does to several items of one merchant, with three statements."""
    merchant_id = items[0].merchant_id
    lock_limits(merchant_id)
    outgoing = Approval.objects.outgoing_amount(merchant_id, now=now) if settings.APPROVAL_DAILY_LIMIT else 0
    made = []
    for item in items:
        outgoing += item.amount
        made.append(_new(item, _approval_reason(item, outgoing), now))
    rows.insert_many(made)
    for each in made:
        if each.is_waiting:
            events.tell_staff(
                StaffEventType.APPROVAL_REQUESTED,
                each.id,
                now,
                merchant_id=merchant_id,
                amount=each.amount,
                detail=each.get_kind_display(),
            )
    return made


def approve(approval_id: str, handler: ApprovalHandler, *, note: str = "", now: datetime) -> Approval:
    """Approve as the actor of the request context. Raises NotDecidable, also from the handler."""
    return _decide(approval_id, handler, ApprovalStatus.APPROVED, note, now)


def reject(approval_id: str, handler: ApprovalHandler, *, note: str, now: datetime) -> Approval:
    """Reject as the actor of the request context. Raises NotDecidable."""
    return _decide(approval_id, handler, ApprovalStatus.REJECTED, note, now)


def is_waiting(*subject_ids: str) -> bool:
    """Whether one of these subjects waits for a second person."""
    return bool(Approval.objects.waiting().filter(subject_id__in=subject_ids).exists())


def exists(subject_id: str, kind: ApprovalKind) -> bool:
    """Whether this was asked for. The database refuses to send what was not approved."""
    return bool(Approval.objects.filter(subject_id=subject_id, kind=kind).exists())


def own_request(approval: Approval) -> str:
    """Why the current actor may not decide about it: it is their own request. Empty if it is not."""
    actor = request_context.current().actor
    if actor == approval.requested_by:
        return _("You requested this. Another person must decide.")
    kind, _separator, public_id = approval.requested_by.partition(":")
    if kind == "key" and ApiKey.objects.filter(public_id=public_id, issued_by=actor).exists():
        return _("An API key that you issued requested this. Another person must decide.")
    return ""


def cancel(*subject_ids: str, now: datetime) -> None:
    """Cancel the approvals that wait, if there are any, because their subjects ended."""
    waiting = Approval.objects.waiting().filter(subject_id__in=subject_ids)
    _close(waiting.select_for_update(no_key=True).order_by("pk"), ApprovalStatus.CANCELED, "", now)


@transaction.atomic
def _decide(
    approval_id: str, handler: ApprovalHandler, target: ApprovalStatus, note: str, now: datetime
) -> Approval:
    handler.lock(Approval.objects.values_list("subject_id", flat=True).get(pk=approval_id))
    approval: Approval = Approval.objects.locked(approval_id)
    if not approval.is_waiting:
        status = approval.get_status_display().lower()
        raise NotDecidable(_("It is %(status)s already.") % {"status": status})
    if own := own_request(approval):
        raise NotDecidable(own)
    # First, because the database releases or ends a subject only if its approval is decided.
    _close([approval], target, note, now)
    is_approved = target == ApprovalStatus.APPROVED
    (handler.approve if is_approved else handler.reject)(approval, now=now)
    event = SecurityEvent.OUTGOING_MONEY_APPROVED if is_approved else SecurityEvent.OUTGOING_MONEY_REJECTED
    security_log.record_on_commit(event, subject=approval.subject_id, merchant_id=approval.merchant_id or "")
    return approval


def _close(approvals: Iterable[Approval], target: ApprovalStatus, note: str, now: datetime) -> None:
    decision = {"decided_by": request_context.current().actor, "decided_at": now, "decision_note": note}
    transition_all([(approval, decision) for approval in approvals], target)


def _new(item: OutgoingMoney, reason: ApprovalReason, now: datetime) -> Approval:
    cause = request_context.current()
    return Approval(
        id=ids.new("apr_", now),
        kind=item.kind,
        subject_id=item.subject_id,
        merchant_id=item.merchant_id,
        amount=item.amount,
        bank_code=item.bank_code,
        account_last4=item.account[-4:],
        account_name=item.account_name,
        account_digest=item.account_digest,
        status=ApprovalStatus.WAITING if reason else ApprovalStatus.WITHIN_LIMITS,
        reason=reason,
        requested_by=cause.actor,
        request_id=cause.request_id,
        requested_at=now,
        note=item.note,
    )


def _approval_reason(item: OutgoingMoney, outgoing: int) -> ApprovalReason:
    """outgoing: satang of 24 hours with this item. A limit of 0 is off."""
    if 0 < settings.APPROVAL_ITEM_LIMIT < item.amount:
        return ApprovalReason.ITEM_LIMIT
    if 0 < settings.APPROVAL_DAILY_LIMIT < outgoing:
        return ApprovalReason.DAILY_LIMIT
    return ApprovalReason.NONE
