"""Outgoing money at the sandbox bank: read an order, select its scenario, store it once."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.db import transaction

from core import ids, money, vault
from sandbox.errors import InvalidOrder, OrderNotFound, OrderReferenceReused
from sandbox.models import SandboxOrder, SandboxOrderStatus

# An order is processing for a moment, so that the sender must inquire; a return comes after its success is
# known.
COMPLETES_AFTER, RETURNS_AFTER = timedelta(seconds=0.5), timedelta(seconds=3)
_PATTERNS = {
    "reference": re.compile("[!-~]{1,64}"),
    "type": re.compile("refund|payout"),
    "amount": re.compile("[0-9.]{1,13}"),
    "currency": re.compile(money.CURRENCY),
    "bank_code": re.compile("[0-9]{3}"),
    "account": re.compile("[0-9]{10,15}"),
    "account_name": re.compile(".{1,140}"),
}


# What a repeated order has in common with the first one.
ORDERED = ("type", "amount", "bank_code", "account", "account_name")
# The scenarios of an order, by its type and the last four digits of the account: why it fails or is returned.
REASONS = {
    ("refund", "0001"): "account_closed",
    ("payout", "0002"): "account_not_found",
    ("payout", "0004"): "account_closed",
}
RETURNED = ("payout", "0004")
# The answer is cut, so the sender must inquire.
TRUNCATED = ("payout", "0003")


def parse(data: Mapping[str, Any], *, now: datetime) -> SandboxOrder:
    """The order, which is not stored yet. Raises InvalidOrder, which names the field."""
    for name, pattern in _PATTERNS.items():
        value = data.get(name)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise InvalidOrder(param=name)
    try:
        amount = money.satang(data["amount"])
    except ValueError:
        amount = 0
    if not 1 <= amount <= money.MAX_AMOUNT:
        raise InvalidOrder(param="amount")
    order_id, scenario = ids.new("sbo_", now), (data["type"], data["account"][-4:])
    return SandboxOrder(
        id=order_id,
        reference=data["reference"],
        type=data["type"],
        amount=amount,
        bank_code=data["bank_code"],
        account_sealed=vault.seal(data["account"], context=order_id),
        account_name=data["account_name"],
        reason=REASONS.get(scenario, ""),
        completes_at=now + COMPLETES_AFTER,
        returns_at=now + RETURNS_AFTER if scenario == RETURNED else None,
        created_at=now,
    )


def accept(draft: SandboxOrder) -> SandboxOrder:
    """Store the order, or return the same order from before. Raises OrderReferenceReused."""
    with transaction.atomic():
        SandboxOrder.objects.bulk_create([draft], ignore_conflicts=True)
        order = SandboxOrder.objects.get(reference=draft.reference)
        if order.pk == draft.pk and order.returns_at is not None:
            body = {"type": "order"} | order_object(order, SandboxOrderStatus.RETURNED)
            order.callbacks.create(
                body=orjson.dumps(body).decode(), due_at=order.returns_at, created_at=order.created_at
            )
    if any(getattr(order, name) != getattr(draft, name) for name in ORDERED):
        raise OrderReferenceReused()
    return order


def find(reference: str) -> SandboxOrder:
    """Raises OrderNotFound."""
    order = None
    if _PATTERNS["reference"].fullmatch(reference):
        order = SandboxOrder.objects.filter(reference=reference).first()
    if order is None:
        raise OrderNotFound()
    return order


def order_object(order: SandboxOrder, status: SandboxOrderStatus) -> dict[str, Any]:
    """The order as the bank shows it in this status."""
    has_reason = status in (SandboxOrderStatus.FAILED, SandboxOrderStatus.RETURNED)
    return {
        "reference": order.reference,
        "bank_reference": order.id,
        "amount": money.baht(order.amount),
        "currency": money.CURRENCY,
        "status": status.value,
        "reason": order.reason if has_reason else "",
    }
