"""The sandbox bank as an acquirer: what becomes of each test token, and refunds to test cards."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from core import clock, ids
from sandbox.models import SandboxCardRefund, SandboxCharge


class Refused(Exception):
    """The acquirer does nothing; the argument is its code for why."""


@dataclass(frozen=True, slots=True)
class TestCard:
    """The card behind a test token. refusal: nothing is tried. is_silent: the answer comes too late."""

    brand: str = "visa"
    last4: str = "4242"
    failure_code: str = ""
    refusal: str = ""
    is_silent: bool = False


CARDS = {
    "tok_test_visa": TestCard(),
    "tok_test_mastercard": TestCard("mastercard", "4444"),
    "tok_test_insufficient_funds": TestCard(last4="9995", failure_code="insufficient_funds"),
    "tok_test_declined": TestCard(last4="0002", failure_code="do_not_honor"),
    "tok_test_expired": TestCard(last4="0069", failure_code="expired_card"),
    "tok_test_used": TestCard(refusal="used_token"),
    "tok_test_timeout": TestCard(is_silent=True),
}
UNKNOWN = TestCard(refusal="invalid_token")


def card_of(token: str) -> TestCard:
    return CARDS.get(token, UNKNOWN)


def charge(*, order_id: str, token: str, amount: int, now: datetime) -> SandboxCharge:
    """Charge a test card; the same order again is the same charge. Raises Refused."""
    card = card_of(token)
    if card.refusal:
        raise Refused(card.refusal)
    draft = SandboxCharge(
        id=ids.new("sbc_", now),
        order_id=order_id,
        amount=amount,
        brand=card.brand,
        last4=card.last4,
        failure_code=card.failure_code,
        created_at=now,
    )
    SandboxCharge.objects.bulk_create([draft], ignore_conflicts=True)
    return SandboxCharge.objects.get(order_id=order_id)


@transaction.atomic
def refund(*, order_id: str, charge_id: str, amount: int, now: datetime) -> SandboxCardRefund:
    """Give money back; the same order again is the same refund. Raises Refused beyond what was charged."""
    charge = SandboxCharge.objects.select_for_update().filter(pk=charge_id, failure_code="").first()
    done = SandboxCardRefund.objects.filter(order_id=order_id).first()
    if done is not None:
        return done
    if charge is None or not 0 < amount <= charge.amount - charge.refunded:
        raise Refused("not_refundable")
    SandboxCharge.objects.filter(pk=charge.pk).update(refunded=F("refunded") + amount)
    return SandboxCardRefund.objects.create(
        id=ids.new("sbr_", now), order_id=order_id, charge=charge, amount=amount, created_at=now
    )


def charge_object(charge: SandboxCharge) -> dict[str, Any]:
    return {
        "id": charge.id,
        "order_id": charge.order_id,
        "status": "failed" if charge.failure_code else "succeeded",
        "amount": charge.amount,
        "failure_code": charge.failure_code or None,
        "card": {"brand": charge.brand, "last4": charge.last4},
        "created_at": clock.iso(charge.created_at),
    }


def refund_object(refund: SandboxCardRefund) -> dict[str, Any]:
    return {
        "id": refund.id,
        "order_id": refund.order_id,
        "charge_id": refund.charge_id,
        "status": "succeeded",
        "amount": refund.amount,
        "created_at": clock.iso(refund.created_at),
    }
