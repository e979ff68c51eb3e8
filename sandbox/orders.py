"""Money out of the sandbox bank: read an order, choose what becomes of it, write it down once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from core import ids, money, vault
from sandbox import shapes
from sandbox.errors import InvalidOrder, OrderNotFound, OrderReferenceReused
from sandbox.models import OrderStatus, SandboxCall, SandboxOrder

# A moment, so that whoever ordered has to ask; and long enough for the success to be known before it ends.
SETTLES_AFTER = timedelta(seconds=0.5)
RETURNS_AFTER = timedelta(seconds=3)
_SHAPES = {
    "reference": re.compile("[!-~]{1,64}"),
    "type": re.compile("refund|payout"),
    "amount": re.compile("[0-9.]{1,13}"),
    "currency": re.compile(money.CURRENCY),
    "bank_code": re.compile("[0-9]{3}"),
    "account": re.compile("[0-9]{10,15}"),
    "account_name": re.compile(".{1,140}"),
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """reason: why it fails, or comes back. is_answer_cut: the service has to ask to learn anything."""

    reason: str = ""
    is_returned: bool = False
    is_answer_cut: bool = False


AS_ORDERED = Scenario()
# By type and the last digits of the account.
SCENARIOS = {
    ("refund", "0001"): Scenario(reason="account_closed"),
    ("payout", "0002"): Scenario(reason="account_not_found"),
    ("payout", "0003"): Scenario(is_answer_cut=True),
    ("payout", "0004"): Scenario(reason="account_closed", is_returned=True),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """An order as it came. amount: satang."""

    reference: str
    type: str
    amount: int
    bank_code: str
    account: str
    account_name: str

    @property
    def scenario(self) -> Scenario:
        return SCENARIOS.get((self.type, self.account[-4:]), AS_ORDERED)


def read(told: Mapping[str, Any]) -> Asked:
    """Raises InvalidOrder, which names the field."""
    text = {name: _shaped(name, told.get(name)) for name in _SHAPES}
    del text["currency"]
    return Asked(**text | {"amount": _satang(text["amount"])})  # type: ignore[arg-type]


def take(asked: Asked, *, now: datetime) -> SandboxOrder:
    """The order with this reference, new or as it was given before. Raises OrderReferenceReused."""
    draft = _draft(asked, now)
    with transaction.atomic():
        SandboxOrder.objects.bulk_create([draft], ignore_conflicts=True)
        order = SandboxOrder.objects.get(reference=asked.reference)
        if order.pk == draft.pk and order.returns_at is not None:
            body = shapes.order_notice(order, OrderStatus.RETURNED)
            SandboxCall.objects.create(order=order, body=body, due_at=order.returns_at, created_at=now)
    if _asked(order) != asked:
        raise OrderReferenceReused()
    return order


def find(reference: str) -> SandboxOrder:
    """Raises OrderNotFound."""
    order = None
    if _SHAPES["reference"].fullmatch(reference):
        order = SandboxOrder.objects.filter(reference=reference).first()
    if order is None:
        raise OrderNotFound()
    return order


def _draft(asked: Asked, now: datetime) -> SandboxOrder:
    order_id, scenario = ids.new("sbo_", now), asked.scenario
    return SandboxOrder(
        id=order_id,
        reference=asked.reference,
        type=asked.type,
        amount=asked.amount,
        bank_code=asked.bank_code,
        account_sealed=vault.seal(asked.account, context=order_id),
        account_name=asked.account_name,
        reason=scenario.reason,
        settles_at=now + SETTLES_AFTER,
        returns_at=now + RETURNS_AFTER if scenario.is_returned else None,
        created_at=now,
    )


def _asked(order: SandboxOrder) -> Asked:
    return Asked(
        order.reference, order.type, order.amount, order.bank_code, order.account, order.account_name
    )


def _shaped(name: str, value: object) -> str:
    if not isinstance(value, str) or not _SHAPES[name].fullmatch(value):
        raise InvalidOrder(param=name)
    return value


def _satang(baht: str) -> int:
    try:
        satang = money.satang(baht)
    except ValueError:
        satang = 0
    if not 1 <= satang <= money.MAX_AMOUNT:
        raise InvalidOrder(param="amount")
    return satang
