from datetime import datetime
from typing import Annotated, TypedDict

from django.conf import settings

from core import failures, money
from core.clock import iso, iso_or_none
from core.http.objects import (
    URI,
    AmountDisplay,
    Currency,
    Instant,
    Metadata,
    PaymentId,
    RefundId,
    TransactionId,
    between,
    one_of,
    satang,
    up_to,
)
from refunds.models import (
    MAX_CLAIM_TRIES,
    ClaimLink,
    ClaimLinkStatus,
    Refund,
    RefundPendingReason,
    RefundReason,
    RefundStatus,
)

MAX_NOTE_LENGTH = 255


class RefundObject(TypedDict):
    refund_id: RefundId
    payment_id: PaymentId
    transaction_id: Annotated[TransactionId, "Its transaction in the history."]
    amount: Annotated[int, satang(1), "Satang, positive."]
    amount_display: AmountDisplay
    currency: Currency
    status: Annotated[str, one_of(RefundStatus)]
    pending_reason: Annotated[str | None, one_of(RefundPendingReason), "What a pending refund waits for."]
    awaiting_approval: Annotated[bool, "A pending refund waits until the operator approves it."]
    reason: Annotated[str | None, one_of(RefundReason)]
    note: Annotated[str | None, up_to(MAX_NOTE_LENGTH)]
    failure_code: Annotated[str | None, up_to(40), failures.described(failures.OF_REFUNDS)]
    metadata: Metadata | None
    created_at: Instant
    updated_at: Instant
    completed_at: Instant | None


class ClaimLinkObject(TypedDict):
    """The link of a refund, without its secret."""

    refund_id: RefundId
    status: Annotated[str, one_of(ClaimLinkStatus)]
    tries_left: Annotated[int, between(0, MAX_CLAIM_TRIES), "Proofs that the payer may still give."]
    created_at: Instant
    expires_at: Instant
    used_at: Instant | None
    revoked_at: Instant | None


class ClaimLinkSecret(ClaimLinkObject):
    """The link of a refund, and its address."""

    claim_url: Annotated[str, URI, "Send it to the payer only."]


def refund_object(refund: Refund) -> RefundObject:
    """Return the API object, which is also `data` of refund events."""
    return {
        "refund_id": refund.id,
        "payment_id": refund.payment_id,
        "transaction_id": refund.transaction_id,
        "amount": refund.amount,
        "amount_display": money.with_code(refund.amount),
        "currency": refund.currency,
        "status": refund.status,
        "pending_reason": refund.pending_reason,
        "awaiting_approval": refund.awaiting_approval,
        "reason": refund.reason,
        "note": refund.note,
        "failure_code": refund.failure_code,
        "metadata": refund.metadata,
        "created_at": iso(refund.created_at),
        "updated_at": iso(refund.updated_at),
        "completed_at": iso_or_none(refund.completed_at),
    }


def claim_link_object(link: ClaimLink, now: datetime) -> ClaimLinkObject:
    """The link without its secret."""
    return {
        "refund_id": link.refund_id,
        "status": link.status_at(now),
        "tries_left": link.tries_left,
        "created_at": iso(link.created_at),
        "expires_at": iso(link.expires_at),
        "used_at": iso_or_none(link.used_at),
        "revoked_at": iso_or_none(link.revoked_at),
    }


def claim_link_secret(link: ClaimLink, now: datetime) -> ClaimLinkSecret:
    """The link with its address."""
    return {**claim_link_object(link, now), "claim_url": f"{settings.BASE_URL}/claim/{link.token}"}
