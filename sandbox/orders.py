"""Outgoing money at the sandbox bank: read an order, select its scenario, store it once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.db import transaction

from core import ids, money, vault
from sandbox.errors import InvalidOrder, OrderNotFound, OrderReferenceReused
from sandbox.models import SandboxCallback, SandboxOrder, SandboxOrderStatus

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


@dataclass(frozen=True, slots=True)
class OrderScenario:
    """reason: why the order fails or is returned. is_response_truncated: the sender must inquire."""

    reason: str = ""
    is_returned: bool = False
    is_response_truncated: bool = False


NORMAL = OrderScenario()
# By type and the last four digits of the account.
SCENARIOS = {
    ("refund", "0001"): OrderScenario(reason="account_closed"),
    ("payout", "0002"): OrderScenario(reason="account_not_found"),
    ("payout", "0003"): OrderScenario(is_response_truncated=True),
    ("payout", "0004"): OrderScenario(reason="account_closed", is_returned=True),
}


@dataclass(frozen=True, slots=True)
class OrderRequest:
    """A valid order. amount: satang."""

    reference: str
    type: str
    amount: int
    bank_code: str
    account: str
    account_name: str

    @property
    def scenario(self) -> OrderScenario:
        return SCENARIOS.get((self.type, self.account[-4:]), NORMAL)


def parse(data: Mapping[str, Any]) -> OrderRequest:
    """Raises InvalidOrder, which names the field."""
    for name, pattern in _PATTERNS.items():
        value = data.get(name)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise InvalidOrder(param=name)
    given = {name: data[name] for name in _PATTERNS if name != "currency"}
    return OrderRequest(**given | {"amount": _satang(data["amount"])})


def accept(order_request: OrderRequest, *, now: datetime) -> SandboxOrder:
    """Store the order, or return the same order from before. Raises OrderReferenceReused."""
    order_id, scenario = ids.new("sbo_", now), order_request.scenario
    draft = SandboxOrder(
        id=order_id,
        reference=order_request.reference,
        type=order_request.type,
        amount=order_request.amount,
        bank_code=order_request.bank_code,
        account_sealed=vault.seal(order_request.account, context=order_id),
        account_name=order_request.account_name,
        reason=scenario.reason,
        completes_at=now + COMPLETES_AFTER,
        returns_at=now + RETURNS_AFTER if scenario.is_returned else None,
        created_at=now,
    )
    with transaction.atomic():
        SandboxOrder.objects.bulk_create([draft], ignore_conflicts=True)
        order = SandboxOrder.objects.get(reference=order_request.reference)
        if order.pk == draft.pk and order.returns_at is not None:
            body = orjson.dumps(
                {"type": "order"} | _order_object(order, SandboxOrderStatus.RETURNED)
            ).decode()
            SandboxCallback.objects.create(order=order, body=body, due_at=order.returns_at, created_at=now)
    stored = OrderRequest(
        order.reference, order.type, order.amount, order.bank_code, order.account, order.account_name
    )
    if stored != order_request:
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


def order_object(order: SandboxOrder, now: datetime) -> dict[str, Any]:
    """The order as the bank shows it at `now`."""
    return _order_object(order, order.status_at(now))


def _order_object(order: SandboxOrder, status: SandboxOrderStatus) -> dict[str, Any]:
    has_reason = status in (SandboxOrderStatus.FAILED, SandboxOrderStatus.RETURNED)
    return {
        "reference": order.reference,
        "bank_reference": order.id,
        "amount": money.baht(order.amount),
        "currency": money.CURRENCY,
        "status": status.value,
        "reason": order.reason if has_reason else "",
    }


def _satang(baht: str) -> int:
    try:
        satang = money.satang(baht)
    except ValueError:
        satang = 0
    if not 1 <= satang <= money.MAX_AMOUNT:
        raise InvalidOrder(param="amount")
    return satang
