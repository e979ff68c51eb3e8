"""The sandbox bank as an acquirer: what it keeps of charges, and its daily transfer of the rest.

Fees and rounding are those of Opn Payments: 3.65 % and 7 % VAT, each rounded half up to a satang.
"""

from datetime import datetime, time, timedelta
from fractions import Fraction
from math import ceil, floor
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from core import clock, ids
from core.clock import BANGKOK
from core.database import rows
from sandbox.models import (
    SandboxCardRefund,
    SandboxCharge,
    SandboxSettledItem,
    SandboxTransfer,
    SettlementFault,
)

FEE_RATE, VAT_RATE = Fraction(365, 10_000), Fraction(7, 100)
TRANSFER_FEE, TRANSFER_FEE_VAT = 2_804, 196  # 30.00 THB with VAT
# A charge can be transferred a day later. A transfer takes all of them each morning in Bangkok.
HOLD, MORNING, DAY = timedelta(days=1), time(8, tzinfo=BANGKOK), timedelta(days=1)
ARRIVES_AFTER = timedelta(seconds=3)
LOCK = "SELECT pg_advisory_xact_lock(hashtext('sandbox transfers'))"
Json = dict[str, Any]


def fees_of(amount: int, *, rounds_vat_up: bool = False) -> tuple[int, int]:
    fee = _half_up(amount * FEE_RATE)
    return fee, ceil(fee * VAT_RATE) if rounds_vat_up else _half_up(fee * VAT_RATE)


def _half_up(amount: Fraction) -> int:
    return floor(amount + Fraction(1, 2))


@transaction.atomic
def transfer_due(now: datetime) -> None:
    """Make the transfers of the mornings that have passed.

    It runs before each list of transfers: what follows from the clock needs no worker.
    """
    lock()
    first = SandboxCharge.objects.transferable(now).order_by("transferable_at").first()
    if first is None:
        return
    morning = datetime.combine(first.transferable_at.astimezone(BANGKOK), MORNING)
    if morning < first.transferable_at:
        morning += DAY
    while morning <= now:
        transfer(morning)
        morning += DAY


@transaction.atomic
def transfer_all(now: datetime) -> SandboxTransfer | None:
    """Transfer all charges at once, without a hold and the morning. None: there is too little."""
    lock()
    SandboxCharge.objects.filter(settled_at=None, transferable_at__gt=now).update(transferable_at=now)
    return transfer(now)


def lock() -> None:
    """Two transfers at once would pay the same charges."""
    rows.run(LOCK, [])


def transfer(at: datetime) -> SandboxTransfer | None:
    """Pay what can be transferred at that time. None: there is too little. The caller has the lock."""
    charges = list(SandboxCharge.objects.transferable(at).order_by("transferable_at", "id"))
    refunds = list(SandboxCardRefund.objects.filter(settled_at=None, created_at__lte=at).order_by("id"))
    shown = [each for each in charges if each.fault != SettlementFault.NOT_SETTLED]
    items = [*map(_charge_item, shown), *map(_refund_item, refunds)]
    amount, faults = sum(item.net for item in items), {each.fault for each in charges}
    if amount <= TRANSFER_FEE + TRANSFER_FEE_VAT:
        return None
    SandboxCharge.objects.filter(pk__in=[each.pk for each in charges]).update(settled_at=at)
    SandboxCardRefund.objects.filter(pk__in=[each.pk for each in refunds]).update(settled_at=at)
    made = _store(items, amount - (SettlementFault.SHORT_TRANSFER in faults), at)
    if SettlementFault.TRANSFERRED_TWICE in faults:
        _store([*map(_charge_item, shown), *map(_refund_item, refunds)], amount, at + timedelta(seconds=1))
    return made


def _store(items: list[SandboxSettledItem], amount: int, at: datetime) -> SandboxTransfer:
    transfer = SandboxTransfer.objects.create(
        id=ids.new("sbt_", at),
        amount=amount,
        fee=TRANSFER_FEE,
        fee_vat=TRANSFER_FEE_VAT,
        paid_at=at + ARRIVES_AFTER,
        created_at=at,
    )
    for item in items:
        item.transfer = transfer
    SandboxSettledItem.objects.bulk_create(items)
    return transfer


def _charge_item(charge: SandboxCharge) -> SandboxSettledItem:
    fee, fee_vat = charge.final_fees
    return SandboxSettledItem(charge=charge, amount=charge.amount, fee=fee, fee_vat=fee_vat)


def _refund_item(refund: SandboxCardRefund) -> SandboxSettledItem:
    """The acquirer keeps the fee of the charge."""
    return SandboxSettledItem(refund=refund, amount=-refund.amount, fee=0, fee_vat=0)


def transfers(since: datetime, until: datetime, *, now: datetime) -> "QuerySet[SandboxTransfer]":
    """The transfers that were created from `since` on and before `until`, the oldest first."""
    transfer_due(now)
    return SandboxTransfer.objects.filter(created_at__gte=since, created_at__lt=until).order_by(
        "created_at", "id"
    )


def items(transfer_id: str) -> "QuerySet[SandboxSettledItem]":
    found = SandboxSettledItem.objects.filter(transfer_id=transfer_id)
    return found.select_related("charge", "refund").order_by("id")


def transfer_object(transfer: SandboxTransfer, now: datetime) -> Json:
    is_paid = transfer.paid_at <= now
    return {
        "id": transfer.id,
        "amount": transfer.amount,
        "fee": transfer.fee,
        "fee_vat": transfer.fee_vat,
        "net": transfer.net,
        "status": "paid" if is_paid else "sent",
        "created_at": clock.iso(transfer.created_at),
        "sent_at": clock.iso(transfer.created_at),
        "paid_at": clock.iso(transfer.paid_at) if is_paid else None,
    }


def item_object(item: SandboxSettledItem) -> Json:
    paid = item.charge or item.refund
    assert paid is not None  # the table checks it
    return {
        "id": str(item.pk),
        "kind": "charge" if item.charge else "refund",
        "reference": paid.id,
        "order_id": paid.order_id,
        "amount": item.amount,
        "fee": item.fee,
        "fee_vat": item.fee_vat,
        "net": item.net,
    }
