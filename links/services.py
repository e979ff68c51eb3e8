"""Make and deactivate payment links, and make the codes of their visitors."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count

from core import ids, request_context
from core.database import rows
from core.errors import ServiceUnavailable
from links.errors import PaymentLinkNotActive, PaymentLinkNotFound
from links.models import LONGEST_LIFE, LinkCode, PaymentLink, PaymentLinkStatus, StoredStatus
from merchants.errors import BankNotConfigured, as_suspension
from merchants.models import Merchant
from payments.models import Payment, PaymentStatus
from qrcodes import services as qr_codes
from webhooks import events, wakeup

# Each try loses only against another request of the same visitor, and then finds its code.
MAX_TRIES = 3


def create(
    *, merchant: Merchant, now: datetime, expires_at: datetime | None = None, **fields: Any
) -> PaymentLink:
    """expires_at: at most `LONGEST_LIFE` from now, and not before now. Raises BankNotConfigured."""
    latest = now + LONGEST_LIFE
    if not merchant.bank or not merchant.biller_id:
        raise BankNotConfigured()
    return PaymentLink.objects.create(
        id=ids.new("pl_", now),
        merchant=merchant,
        created_at=now,
        expires_at=min(max(expires_at or latest, now), latest),
        **fields,
    )


def find(payment_link_id: str, *, merchant: Merchant | None = None) -> PaymentLink:
    """Find a link of this merchant, or of any merchant for its page. Raises PaymentLinkNotFound."""
    where = {} if merchant is None else {"merchant": merchant}
    links = PaymentLink.objects.select_related("merchant").filter(**where)
    return ids.find(payment_link_id, "pl_", links, PaymentLinkNotFound)


def open_codes(links: Iterable[PaymentLink], now: datetime) -> dict[str, int]:
    """How many codes of each link a visitor can pay now, by one query. They are few: each lives for a day."""
    found = Payment.objects.filter(
        payment_link_id__in=[link.id for link in links], status=PaymentStatus.PENDING, expires_at__gt=now
    )
    return dict(found.values_list("payment_link_id").annotate(count=Count("pk")).order_by())


@transaction.atomic
def deactivate(link: PaymentLink, *, now: datetime) -> PaymentLink:
    """End a link. Its open codes can still be paid. Raises PaymentLinkNotActive."""
    link = PaymentLink.objects.select_for_update(no_key=True).get(pk=link.pk)
    if (status := link.status_at(now)) != PaymentLinkStatus.ACTIVE:
        raise PaymentLinkNotActive(status=status)
    actor = request_context.current().actor
    link.transition(StoredStatus.DEACTIVATED, deactivated_at=now, deactivated_by=actor)
    return link


def latest_code(link: PaymentLink, visitor: str) -> LinkCode | None:
    mine = LinkCode.objects.filter(link=link, visitor=visitor).select_related("payment")
    return mine.order_by("-number").first()


def pay(link: PaymentLink, *, visitor: str, amount: int, now: datetime) -> Payment:
    """The open payment of the visitor, or a new one with its code.

    Two visitors may have open codes of a link that is paid once: money is never refused. Raises
    PaymentLinkNotActive, MerchantSuspended, BankNotConfigured.
    """
    for _ in range(MAX_TRIES):
        link.refresh_from_db(fields=["status", "payments", "expires_at"])
        latest = latest_code(link, visitor)
        if latest is not None and latest.payment.status_at(now) == PaymentStatus.PENDING:
            return latest.payment
        if (status := link.status_at(now)) != PaymentLinkStatus.ACTIVE:
            raise PaymentLinkNotActive(status=status)
        try:
            return _make_code(link, visitor, 1 if latest is None else latest.number + 1, amount, now)
        except IntegrityError as refused:
            if not any(name in str(refused) for name in ("linkcode_once", "the link has ended")):
                raise as_suspension(refused) from None
    raise ServiceUnavailable(retry_after=1)


@transaction.atomic
def change_amount(link: PaymentLink, *, code: LinkCode, amount: int, now: datetime) -> Payment:
    """End the visitor's open code, and make one of another amount. Raises QrCodeNotExpirable, as `pay`."""
    qr_codes.expire(merchant=link.merchant, qr_code_id=str(code.payment.qr_code_id), now=now)
    return pay(link, visitor=code.visitor, amount=amount, now=now)


@transaction.atomic
def _make_code(link: PaymentLink, visitor: str, number: int, amount: int, now: datetime) -> Payment:
    given = {name: getattr(link, name) for name in ("reference", "description", "metadata")}
    new = qr_codes.generate(
        merchant=link.merchant,
        subscriptions=events.subscriptions_of([link.merchant_id]).get(link.merchant_id, []),
        now=now,
        amount=amount,
        expiry_minutes=link.expiry_minutes,
        payment_link_id=link.id,
        **{name: value for name, value in given.items() if value is not None},
    )
    code = rows.new(LinkCode, payment=new.payment, link=link, visitor=visitor, number=number)
    rows.insert_together([*new.rows, code])
    if events.has_deliveries(new.event_rows):
        wakeup.wake_on_commit()
    return new.payment
