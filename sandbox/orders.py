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
from sandbox.models import SandboxCallback, SandboxOrder, SandboxOrderStatus

# A moment, so that whoever ordered has to ask; and long enough for the success to be known before it ends.
SETTLES_AFTER = timedelta(seconds=0.5)
RETURNS_AFTER = timedelta(seconds=3)
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
    """reason: why it fails, or comes back. is_answer_cut: the service has to ask to learn anything."""

    reason: str = ""
    is_returned: bool = False
    is_response_truncated: bool = False


NORMAL = OrderScenario()
# By type and the last digits of the account.
SCENARIOS = {
    ("refund", "0001"): OrderScenario(reason="account_closed"),
    ("payout", "0002"): OrderScenario(reason="account_not_found"),
    ("payout", "0003"): OrderScenario(is_response_truncated=True),
    ("payout", "0004"): OrderScenario(reason="account_closed", is_returned=True),
}


@dataclass(frozen=True, slots=True)
class OrderRequest:
    """An order as it came. amount: satang."""

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
    text = {name: _matching(name, data.get(name)) for name in _PATTERNS}
    del text["currency"]
    return OrderRequest(**text | {"amount": _satang(text["amount"])})  # type: ignore[arg-type]


def accept(order_request: OrderRequest, *, now: datetime) -> SandboxOrder:
    """The order with this reference, new or as it was given before. Raises OrderReferenceReused."""
    draft = _draft(order_request, now)
    with transaction.atomic():
        SandboxOrder.objects.bulk_create([draft], ignore_conflicts=True)
        order = SandboxOrder.objects.get(reference=order_request.reference)
        if order.pk == draft.pk and order.returns_at is not None:
            body = shapes.order_notification_body(order, SandboxOrderStatus.RETURNED)
            SandboxCallback.objects.create(order=order, body=body, due_at=order.returns_at, created_at=now)
    if _request_of(order) != order_request:
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


def _draft(order_request: OrderRequest, now: datetime) -> SandboxOrder:
    order_id, scenario = ids.new("sbo_", now), order_request.scenario
    return SandboxOrder(
        id=order_id,
        reference=order_request.reference,
        type=order_request.type,
        amount=order_request.amount,
        bank_code=order_request.bank_code,
        account_sealed=vault.seal(order_request.account, context=order_id),
        account_name=order_request.account_name,
        reason=scenario.reason,
        completes_at=now + SETTLES_AFTER,
        returns_at=now + RETURNS_AFTER if scenario.is_returned else None,
        created_at=now,
    )


def _request_of(order: SandboxOrder) -> OrderRequest:
    return OrderRequest(
        order.reference, order.type, order.amount, order.bank_code, order.account, order.account_name
    )


def _matching(name: str, value: object) -> str:
    if not isinstance(value, str) or not _PATTERNS[name].fullmatch(value):
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
