from datetime import datetime
from typing import Annotated, TypedDict

from django.conf import settings

from core import failures, money
from core.clock import iso, iso_or_none
from core.http import objects
from refunds import models

MAX_NOTE_LENGTH = 255


class RefundObject(TypedDict):
    refund_id: objects.RefundId
    payment_id: objects.PaymentId
    transaction_id: Annotated[objects.TransactionId, "Its transaction in the history."]
    amount: Annotated[int, objects.satang(1), "Satang, positive."]
    amount_display: objects.AmountDisplay
    currency: objects.Currency
    status: Annotated[str, objects.one_of(models.RefundStatus)]
    pending_reason: Annotated[
        str | None, objects.one_of(models.RefundPendingReason), "What a pending refund waits for."
    ]
    awaiting_approval: Annotated[bool, "A pending refund waits until the operator approves it."]
    reason: Annotated[str | None, objects.one_of(models.RefundReason)]
    note: Annotated[str | None, objects.up_to(MAX_NOTE_LENGTH)]
    failure_code: Annotated[str | None, objects.up_to(40), failures.described(failures.OF_REFUNDS)]
    metadata: objects.Metadata | None
    created_at: objects.Instant
    updated_at: objects.Instant
    completed_at: objects.Instant | None


class ClaimLinkObject(TypedDict):
    """The link of a refund, without its secret."""

    refund_id: objects.RefundId
    status: Annotated[str, objects.one_of(models.ClaimLinkStatus)]
    tries_left: Annotated[
        int, objects.between(0, models.MAX_CLAIM_TRIES), "Proofs that the payer may still give."
    ]
    created_at: objects.Instant
    expires_at: objects.Instant
    used_at: objects.Instant | None
    revoked_at: objects.Instant | None


class ClaimLinkSecret(ClaimLinkObject):
    """The link of a refund, and its address."""

    claim_url: Annotated[str, objects.URI, "Send it to the payer only."]


def refund_object(refund: models.Refund) -> RefundObject:
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


def claim_link_object(link: models.ClaimLink, now: datetime) -> ClaimLinkObject:
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


def claim_link_secret(link: models.ClaimLink, now: datetime) -> ClaimLinkSecret:
    """The link with its address."""
    return {**claim_link_object(link, now), "claim_url": f"{settings.BASE_URL}/claim/{link.token}"}
