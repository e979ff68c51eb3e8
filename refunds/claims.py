"""Claim links: the payer proves the payment and names the account of a refund that waits for one."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import transaction

from core import ids, request_context, security_log, vault
from core.security_log import SecurityEvent
from merchants.models import Merchant
from payments.models import Payment
from refunds import completion, destinations, services
from refunds.errors import ClaimLinkNotFound, RefundNotAddressable
from refunds.models import MAX_CLAIM_TRIES, ClaimLink, ClaimTry, Refund, RefundPendingReason

TOKEN_LENGTH = 32  # base62: 190 random bits
MAX_FAILURES_OF_NETWORK = 20
FAILURES_COUNT_FOR = timedelta(hours=24)


class ClaimLinkClosed(Exception):
    """The token is unknown, expired or revoked. Visitors learn no more."""


class ClaimNotProven(Exception):
    """The proof is wrong. The try counts."""


class TooManyClaimTries(Exception):
    """The link, or the network of the visitor, has no try left."""


@transaction.atomic
def create(*, merchant: Merchant, refund_id: str, hours: int, now: datetime) -> ClaimLink:
    """Make a link to a refund that waits for an account. It replaces an earlier one.

    Raises RefundNotFound, RefundNotAddressable.
    """
    _payment, refund = completion.lock(services.find(merchant=merchant, refund_id=refund_id).id)
    if refund.pending_reason != RefundPendingReason.AWAITING_DESTINATION:
        raise RefundNotAddressable(status=refund.pending_reason or refund.status)
    _revoke(refund, now)
    link_id, token = ids.new("clm_", now), ids.random_text(TOKEN_LENGTH)
    link: ClaimLink = ClaimLink.objects.create(
        id=link_id,
        refund=refund,
        token_digest=_digest(token),
        token_sealed=vault.seal(token, context=link_id),
        created_at=now,
        expires_at=now + timedelta(hours=hours),
        **request_context.columns(),
    )
    return link


def find(*, merchant: Merchant, refund_id: str) -> ClaimLink:
    """The newest link of a refund. Raises RefundNotFound, ClaimLinkNotFound."""
    refund = services.find(merchant=merchant, refund_id=refund_id)
    found = newest(refund)
    if found is None:
        raise ClaimLinkNotFound(id=refund.id)
    return found


def newest(refund: Refund) -> ClaimLink | None:
    found: ClaimLink | None = refund.claim_links.order_by("-created_at", "-id").first()
    return found


@transaction.atomic
def revoke(*, refund_id: str, now: datetime) -> None:
    """End the link of a refund. Raises ClaimLinkNotFound if it has none."""
    _payment, refund = completion.lock(refund_id)
    if not _revoke(refund, now):
        raise ClaimLinkNotFound(id=refund.id)


def open_link(token: str, *, now: datetime) -> ClaimLink:
    """The link of a token, as its page shows it. Raises ClaimLinkClosed for each that has no page."""
    links = ClaimLink.objects.select_related("refund__payment__merchant")
    link: ClaimLink | None = links.filter(token_digest=_digest(token)).first()
    if link is None or not link.is_shown_at(now):
        raise ClaimLinkClosed()
    return link


def claim(
    link: ClaimLink,
    destination: Mapping[str, str],
    *,
    is_proven: Callable[[Payment], bool],
    network: str,
    now: datetime,
) -> None:
    """Send the refund to this account if the proof is right. Each proof counts as a try.

    Raises ClaimLinkClosed, RefundNotAddressable, TooManyClaimTries, ClaimNotProven, BankNotConfigured,
    PayoutAccountNotAllowed, PayoutAccountTooNew.
    """
    with transaction.atomic():
        payment, refund = completion.lock(link.refund_id)
        locked = ClaimLink.objects.select_for_update(no_key=True).get(pk=link.pk)
        number = _next_try(locked, refund, network, now)
        proven = is_proven(payment)
        ClaimTry.objects.create(link=locked, number=number, network=network, is_proven=proven, tried_at=now)
        if proven:
            _send(payment, refund, locked, destination, now)
    # After the commit, so that the try counts.
    if not proven:
        security_log.record(SecurityEvent.CLAIM_REFUSED, subject=link.pk, merchant_id=refund.merchant_id)
        raise ClaimNotProven()


def _next_try(link: ClaimLink, refund: Refund, network: str, now: datetime) -> int:
    """The number of this try. The caller holds the locks of payment, refund and link."""
    if not link.is_shown_at(now):
        raise ClaimLinkClosed()
    if refund.pending_reason != RefundPendingReason.AWAITING_DESTINATION:
        raise RefundNotAddressable(status=refund.pending_reason or refund.status)
    number: int = link.tries.count() + 1
    if number > MAX_CLAIM_TRIES or _failures_of(network, now) >= MAX_FAILURES_OF_NETWORK:
        raise TooManyClaimTries()
    return number


def _failures_of(network: str, now: datetime) -> int:
    """Wrong proofs of this network, at any link, within a day."""
    since = now - FAILURES_COUNT_FOR
    failed = ClaimTry.objects.filter(network=network, tried_at__gt=since, is_proven=False)
    return failed[:MAX_FAILURES_OF_NETWORK].count()


def _send(
    payment: Payment, refund: Refund, link: ClaimLink, destination: Mapping[str, str], now: datetime
) -> None:
    link.used_at = now
    link.save(update_fields=["used_at"])
    with _as_maker(link):
        services.queue(
            refund,
            destinations.to_account(payment, destination, now=now),
            now,
            note=f"The payer named this account by claim link {link.pk}.",
        )


@contextmanager
def _as_maker(link: ClaimLink) -> Iterator[None]:
    """Act as whoever made the link, so that they cannot approve the transfer themselves."""
    visitor = request_context.current().actor
    request_context.set_actor(link.actor)
    try:
        yield
    finally:
        request_context.set_actor(visitor)


def _revoke(refund: Refund, now: datetime) -> int:
    return refund.claim_links.filter(revoked_at=None).update(revoked_at=now)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
