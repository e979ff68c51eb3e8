"""What an advance moves: times of the merchant's rows that lie ahead.

Rows that a worker has locked stay: it is at work on them, and will set their next time itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import DateTimeField, F, QuerySet, Value
from django.db.models.functions import Greatest

from links.models import PaymentLink, StoredStatus
from merchants.models import Merchant
from payments import services as payments
from payments.card_models import OPEN_STATES as OPEN_CHARGE_STATES
from payments.models import CardCharge, Payment, PaymentStatus
from qrcodes.models import QrCode
from reconciliation.models import Inquiry
from sandbox import bank_clock, settlements
from testclock.shapes import MovedRows
from transfers.models import IS_OPEN, Transfer
from webhooks.models import Delivery, DeliveryState, Endpoint, EndpointHealth

# Inquiries about so many of the newest unpaid codes move. A merchant may have millions of older ones.
MAX_INQUIRED_CODES = MAX_HELD_CHARGES = 1_000
MILLISECOND = timedelta(milliseconds=1)
Rows = QuerySet[Any]


@dataclass(frozen=True, slots=True)
class Advance:
    """One advance of a merchant's time at the instant `now`."""

    merchant: Merchant
    now: datetime
    span: timedelta

    def earlier(self, at: datetime) -> datetime:
        """The new instant of what was due at `at`. The past does not change."""
        return at if at <= self.now else max(at - self.span, self.now)

    def update(self, *names: str) -> dict[str, Any]:
        """`earlier` for columns that lie ahead."""
        floor = Value(self.now, DateTimeField())
        return {
            name: Greatest(F(name) - Value(self.span), floor, output_field=DateTimeField()) for name in names
        }


def count_rows(step: Advance, limit: int) -> int:
    """How many rows the advance moves. Counts up to `limit` + 1 of each kind."""
    kinds: list[Callable[[Advance], Rows]] = [_codes, _charges, _links, _transfers, _deliveries]
    counted = sum(kind(step)[: limit + 1].count() for kind in kinds)
    return counted + bank_clock.count_reports(step.merchant.biller_id, now=step.now, limit=limit)


def move(step: Advance) -> MovedRows:
    """Move all rows, in the caller's transaction. Returns how many of each kind."""
    codes = list(_codes(step).order_by("pk").select_for_update(no_key=True))
    expiries = {code.pk: code.expires_at for code in codes}
    expired = payments.bring_expiry_forward(codes, span=step.span, now=step.now)
    by_card = Payment.objects.of(step.merchant).filter(status=PaymentStatus.PENDING, qr_code_id=None)
    bank_clock.age_charges(list(by_card.values_list("pk", flat=True)), span=step.span)
    bank_clock.settle_sooner(_held_charges(step), span=step.span, now=step.now)
    orders = Transfer.objects.filter(IS_OPEN, merchant_id=step.merchant.pk).values_list("pk", flat=True)
    bank_clock.complete_sooner(list(orders), span=step.span, now=step.now)
    return {
        "qr_codes": len(codes),
        "expired": expired,
        "card_payments": _move(_charges(step), step, "due_at"),
        "payment_links": _move(_links(step), step, "expires_at"),
        "inquiries": _move(_inquiries(step), step, "due_at"),
        "transfers": _move(_transfers(step), step, "due_at"),
        "deliveries": _move_deliveries(step),
        "bank_reports": _move_bank_reports(step, codes, expiries),
    }


def _codes(step: Advance) -> Rows:
    return Payment.objects.of(step.merchant).filter(status=PaymentStatus.PENDING, expires_at__gt=step.now)


def _charges(step: Advance) -> Rows:
    mine = Payment.objects.of(step.merchant).filter(status=PaymentStatus.PENDING, qr_code_id=None)
    return CardCharge.objects.filter(
        payment_id__in=mine.values("pk"), state__in=OPEN_CHARGE_STATES, due_at__gt=step.now
    )


def _links(step: Advance) -> Rows:
    return PaymentLink.objects.filter(
        merchant=step.merchant, status=StoredStatus.ACTIVE, expires_at__gt=step.now
    )


def _held_charges(step: Advance) -> list[str]:
    """The card payments whose money the sandbox bank may still hold."""
    paid = Payment.objects.of(step.merchant).filter(
        status__in=[PaymentStatus.SUCCEEDED, PaymentStatus.REFUNDED],
        qr_code_id=None,
        created_at__gt=step.now - settlements.HOLD,
    )
    return list(paid.order_by("-created_at", "-id").values_list("pk", flat=True)[:MAX_HELD_CHARGES])


def _inquiries(step: Advance) -> Rows:
    unpaid = Payment.objects.of(step.merchant).filter(
        status__in=[PaymentStatus.PENDING, PaymentStatus.EXPIRED], qr_code_id__isnull=False
    )
    newest = unpaid.order_by("-created_at", "-id").values_list("pk", flat=True)[:MAX_INQUIRED_CODES]
    return Inquiry.objects.filter(payment_id__in=list(newest), due_at__gt=step.now)


def _transfers(step: Advance) -> Rows:
    return Transfer.objects.filter(IS_OPEN, merchant_id=step.merchant.pk, due_at__gt=step.now)


def _deliveries(step: Advance) -> Rows:
    endpoints = Endpoint.objects.of(step.merchant).values("pk")
    return Delivery.objects.filter(
        endpoint_id__in=endpoints, state=DeliveryState.PENDING, due_at__gt=step.now
    )


def _move(found: Rows, step: Advance, *names: str) -> int:
    """Move these columns of the rows that nobody has locked."""
    locked = found.select_for_update(skip_locked=True, no_key=True)
    keys = list(locked.values_list("pk", flat=True))
    found.model._default_manager.filter(pk__in=keys).update(**step.update(*names))
    return len(keys)


def _move_deliveries(step: Advance) -> int:
    """Also the pauses of endpoints, their time without a success, and the end of previous secrets."""
    endpoints = Endpoint.objects.of(step.merchant)
    for endpoint in endpoints.exclude(replaced_secrets_sealed="").select_for_update(no_key=True):
        replaced = [(secret, step.earlier(until)) for secret, until in endpoint.replaced_secrets]
        endpoint.set_secrets(endpoint.secret, replaced)
        endpoint.save(update_fields=["replaced_secrets_sealed"])
    healths = EndpointHealth.objects.filter(endpoint_id__in=endpoints.values("pk"))
    healths.filter(paused_until__gt=step.now).update(**step.update("paused_until"))
    healths.update(failing_since=F("failing_since") - step.span, attempted_at=F("attempted_at") - step.span)
    return _move(_deliveries(step), step, "due_at")


def _move_bank_reports(step: Advance, codes: Sequence[Payment], expiries: dict[str, datetime | None]) -> int:
    """Payments that the sandbox bank plans keep their order with the expiry of their code."""
    made = QrCode.objects.filter(payment_id__in=[code.pk for code in codes])
    payment_ids = dict(made.values_list("reference1", "payment_id"))
    moved = {code.pk: code.expires_at for code in codes}

    def earlier(reference1: str, at: datetime) -> datetime:
        payment_id = payment_ids.get(reference1, "")
        before, after = expiries.get(payment_id), moved.get(payment_id)
        is_late = before is not None and after is not None and at > before
        return max(step.earlier(at), after + MILLISECOND) if is_late and after else step.earlier(at)

    return bank_clock.report_sooner(step.merchant.biller_id, earlier, span=step.span, now=step.now)
