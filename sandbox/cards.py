"""The sandbox bank as an acquirer: charges of test cards by token, and refunds."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F

from core import clock, ids, money
from sandbox import settlements
from sandbox.models import ChargeAuthorization, SandboxCardRefund, SandboxCharge, SettlementFault


class ChargeRefused(Exception):
    """The acquirer refused the request; the argument is its code for the reason."""


@dataclass(frozen=True, slots=True)
class TestCard:
    """The card behind a test token.

    refusal: the code if the token is invalid. is_silent: the answer comes too late. is_secured: the payer
    authorises the charge on a page of the bank (3-D Secure). fault: of the fee or the settlement.
    """

    brand: str = "visa"
    last4: str = "4242"
    failure_code: str = ""
    refusal: str = ""
    is_silent: bool = False
    is_secured: bool = False
    fault: SettlementFault = SettlementFault.NONE


CARDS = {
    "tok_test_visa": TestCard(),
    "tok_test_mastercard": TestCard("mastercard", "4444"),
    "tok_test_insufficient_funds": TestCard(last4="9995", failure_code="insufficient_funds"),
    "tok_test_declined": TestCard(last4="0002", failure_code="do_not_honor"),
    "tok_test_expired": TestCard(last4="0069", failure_code="expired_card"),
    "tok_test_used": TestCard(refusal="used_token"),
    "tok_test_timeout": TestCard(is_silent=True),
    "tok_test_3ds": TestCard(last4="3220", is_secured=True),
    **{f"tok_test_{fault}": TestCard(fault=fault) for fault in SettlementFault if fault},
}
UNKNOWN = TestCard(refusal="invalid_token")


def card_of(token: str) -> TestCard:
    return CARDS.get(token, UNKNOWN)


def charge(*, order_id: str, token: str, amount: int, return_uri: str, now: datetime) -> SandboxCharge:
    """Charge a test card, once for an order. Raises ChargeRefused."""
    card = card_of(token)
    if card.refusal:
        raise ChargeRefused(card.refusal)
    is_rounded_up = card.fault == SettlementFault.VAT_ROUNDED_UP
    fee, fee_vat = settlements.fees_of(amount, rounds_vat_up=is_rounded_up)
    draft = SandboxCharge(
        id=ids.new("sbc_", now),
        order_id=order_id,
        amount=amount,
        brand=card.brand,
        last4=card.last4,
        failure_code=card.failure_code,
        authorization=ChargeAuthorization.PENDING if card.is_secured else ChargeAuthorization.NONE,
        return_uri=return_uri,
        fee=fee,
        fee_vat=fee_vat,
        fault=card.fault,
        transferable_at=now + settlements.HOLD,
        created_at=now,
    )
    SandboxCharge.objects.bulk_create([draft], ignore_conflicts=True)
    return SandboxCharge.objects.get(order_id=order_id)


@transaction.atomic
def authorize(charge_id: str, *, is_authorized: bool, now: datetime) -> SandboxCharge | None:
    """Store the payer's decision, once and within the lifetime. None: the charge does not exist."""
    charge = SandboxCharge.objects.select_for_update().filter(pk=charge_id).first()
    if charge is not None and charge.is_authorizable_at(now):
        decided = ChargeAuthorization.AUTHORIZED if is_authorized else ChargeAuthorization.REFUSED
        charge.authorization = decided
        charge.failure_code = "" if is_authorized else "authentication_failed"
        charge.save(update_fields=["authorization", "failure_code"])
    return charge


@transaction.atomic
def refund(*, order_id: str, charge_id: str, amount: int, now: datetime) -> SandboxCardRefund:
    """Refund a charge, once for an order. Raises ChargeRefused above the charged amount."""
    charge = SandboxCharge.objects.select_for_update().filter(pk=charge_id, failure_code="").first()
    done = SandboxCardRefund.objects.filter(order_id=order_id).first()
    if done is not None:
        return done
    if (
        charge is None
        or charge.status_at(now) != "succeeded"
        or not 0 < amount <= charge.amount - charge.refunded
    ):
        raise ChargeRefused("not_refundable")
    SandboxCharge.objects.filter(pk=charge.pk).update(refunded=F("refunded") + amount)
    return SandboxCardRefund.objects.create(
        id=ids.new("sbr_", now), order_id=order_id, charge=charge, amount=amount, created_at=now
    )


def charge_object(charge: SandboxCharge, now: datetime) -> dict[str, Any]:
    is_abandoned = charge.authorization == ChargeAuthorization.PENDING and not charge.is_authorizable_at(now)
    authorize_uri = f"{settings.BASE_URL}/sandbox/bank/cards/{charge.id}"
    fee, fee_vat = charge.fees_at(now)
    return {
        "id": charge.id,
        "order_id": charge.order_id,
        "status": charge.status_at(now),
        "amount": charge.amount,
        "currency": money.CURRENCY,
        "fee": fee,
        "fee_vat": fee_vat,
        "failure_code": "authorization_expired" if is_abandoned else charge.failure_code or None,
        "authorize_uri": authorize_uri if charge.is_authorizable_at(now) else None,
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
