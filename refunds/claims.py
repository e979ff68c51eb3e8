"""Claim links: the payer proves the payment and names the account of a refund that waits for one."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

from django.db import transaction

from core import ids, request_context, vault
from core.errors import ApiError
from core.observing import security_log
from core.observing.security_log import SecurityEvent
from merchants.models import Merchant
from payments.models import Payment
from refunds import completion, destinations, services
from refunds.errors import ClaimLinkNotFound, TooManyClaimLinks
from refunds.models import MAX_CLAIM_TRIES, ClaimLink, ClaimTry, Refund

# Base62: 190 random bits. `core.observing.logs` masks it by its prefix.
TOKEN_PREFIX, TOKEN_LENGTH = "clt_", 32
# Links of one refund. Each has five tries, so nobody guesses four digits by asking for new links.
MAX_LINKS = 10
MAX_FAILURES_OF_NETWORK = 20
FAILURES_COUNT_FOR = timedelta(hours=24)


class ClaimRefused(Exception):
    """The page takes nothing. reason: `closed`: the token is unknown, expired or revoked; visitors learn no
    more. `tries`: none is left. `network`: too many wrong proofs came from it, and others can go on.
    """

    def __init__(self, reason: Literal["closed", "tries", "network"]) -> None:
        self.reason = reason


class ClaimNotProven(Exception):
    """The proof is wrong. The try counts."""


@transaction.atomic
def create(*, merchant: Merchant, refund_id: str, hours: int, now: datetime) -> ClaimLink:
    """Make a link to a refund that waits for an account. It replaces an earlier one.

    Raises RefundNotFound, RefundNotAddressable, TooManyClaimLinks.
    """
    _payment, refund = completion.lock(services.find(merchant=merchant, refund_id=refund_id).id)
    services.check_addressable(refund)
    if refund.claim_links.count() >= MAX_LINKS:
        raise TooManyClaimLinks(limit=MAX_LINKS)
    _revoke(refund, now)
    link_id, token = ids.new("clm_", now), TOKEN_PREFIX + ids.random_text(TOKEN_LENGTH)
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


def reveal(*, merchant: Merchant, refund_id: str) -> ClaimLink:
    """The newest link of a refund. Logs that it is revealed. Raises RefundNotFound, ClaimLinkNotFound."""
    refund = services.find(merchant=merchant, refund_id=refund_id)
    found = newest(refund)
    if found is None:
        raise ClaimLinkNotFound(id=refund.id)
    security_log.record(SecurityEvent.SECRET_REVEALED, subject=found.id, merchant_id=merchant.id)
    return found


def newest(refund: Refund) -> ClaimLink | None:
    found: ClaimLink | None = refund.claim_links.order_by("-created_at", "-id").first()
    return found


@transaction.atomic
def revoke(*, refund_id: str, now: datetime) -> None:
    """End the link of a refund that waits. Raises RefundNotAddressable, ClaimLinkNotFound."""
    _payment, refund = completion.lock(refund_id)
    services.check_addressable(refund)
    if not _revoke(refund, now):
        raise ClaimLinkNotFound(id=refund.id)


def open_link(token: str, *, now: datetime) -> ClaimLink:
    """The link of a token, as its page shows it. Raises ClaimRefused for each that has no page."""
    links = ClaimLink.objects.select_related("refund__payment__merchant")
    link: ClaimLink | None = links.filter(token_digest=_digest(token)).first()
    if link is None or not link.is_shown_at(now) or link.refund.payment.merchant.moved_at is not None:
        raise ClaimRefused("closed")
    return link


def refunds_of(tokens: Sequence[str]) -> list[str]:
    """The refunds that these tokens belong to, also after their links have ended."""
    digests = [_digest(each) for each in tokens if each.startswith(TOKEN_PREFIX)]
    return list(ClaimLink.objects.filter(token_digest__in=digests).values_list("refund", flat=True))


def claim(
    link: ClaimLink,
    destination: Mapping[str, str],
    *,
    is_proven: Callable[[Payment], bool],
    network: str,
    now: datetime,
) -> None:
    """Send the refund to this account if the proof is right. Each try counts, also if the account is refused.

    Raises ClaimRefused, RefundNotAddressable, ClaimNotProven, BankNotConfigured, PayoutAccountNotAllowed,
    PayoutAccountTooNew.
    """
    with transaction.atomic():
        payment, refund = completion.lock(link.refund_id)
        locked = ClaimLink.objects.select_for_update(no_key=True).get(pk=link.pk)
        number = _next_try(locked, refund, network, now)
        proven, refused = is_proven(payment), None
        ClaimTry.objects.create(link=locked, number=number, network=network, is_proven=proven, tried_at=now)
        if proven:
            refused = _try_to_send(payment, refund, locked, destination, now)
    # After the commit, so that the try counts.
    if refused is not None:
        raise refused
    if not proven:
        security_log.record(SecurityEvent.CLAIM_REFUSED, subject=link.pk, merchant_id=refund.merchant_id)
        raise ClaimNotProven()


def _next_try(link: ClaimLink, refund: Refund, network: str, now: datetime) -> int:
    """The number of this try. The caller holds the locks of payment, refund and link."""
    if not link.is_shown_at(now):
        raise ClaimRefused("closed")
    services.check_addressable(refund)
    number: int = link.tries.count() + 1
    if number > MAX_CLAIM_TRIES:
        raise ClaimRefused("tries")
    # At any link of the merchant: it blocks no other's payers.
    failed = ClaimTry.objects.filter(network=network, is_proven=False, tried_at__gt=now - FAILURES_COUNT_FOR)
    of_merchant = failed.filter(link__refund__merchant_id=refund.merchant_id)
    if of_merchant[:MAX_FAILURES_OF_NETWORK].count() >= MAX_FAILURES_OF_NETWORK:
        raise ClaimRefused("network")
    return number


def _try_to_send(
    payment: Payment, refund: Refund, link: ClaimLink, destination: Mapping[str, str], now: datetime
) -> ApiError | None:
    """Send the refund, or return why this account is refused. Then nothing but the try is stored.

    The actor is the maker of the link, who then cannot approve the transfer.
    """
    visitor = request_context.current().actor
    request_context.set_actor(link.actor)
    try:
        with transaction.atomic():
            link.used_at = now
            link.save(update_fields=["used_at"])
            to = destinations.to_account(payment, destination, now=now)
            services.queue([refund], to, now, note=f"The payer named this account by claim link {link.pk}.")
    except ApiError as refusal:
        return refusal
    finally:
        request_context.set_actor(visitor)
    return None


def _revoke(refund: Refund, now: datetime) -> int:
    return refund.claim_links.filter(revoked_at=None).update(revoked_at=now)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
