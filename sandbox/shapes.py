"""Objects of the sandbox bank as plain data."""

from datetime import datetime, timedelta, timezone
from typing import Any

import orjson

from core import money
from sandbox.models import OrderStatus, SandboxOrder, SandboxPayment

BANGKOK = timezone(timedelta(hours=7))


def accepted(payment: SandboxPayment) -> dict[str, Any]:
    return {"bank_transaction_id": payment.id, "scenario": payment.scenario, "accepted": True}


def notice(payment: SandboxPayment, kind: str) -> str:
    """The body of a callback."""
    told = {
        "transaction_id": payment.id,
        "type": kind,
        "biller_id": payment.biller_id,
        "reference1": payment.reference1,
        "reference2": payment.reference2,
        "reference3": payment.reference3,
        "amount": money.baht(payment.amount),
        "currency": money.CURRENCY,
        "paid_at": payment.paid_at.astimezone(BANGKOK).isoformat(timespec="milliseconds"),
        "payer_name": payment.payer_name,
        "payer_bank_code": payment.payer_bank_code,
        "payer_account": payment.payer_account,
    }
    return orjson.dumps(told).decode()


def order_at(order: SandboxOrder, now: datetime) -> dict[str, Any]:
    """What the bank says of an order when asked at `now`."""
    return _order(order, order.status_at(now))


def order_notice(order: SandboxOrder, status: OrderStatus) -> str:
    """The body of a callback about an order."""
    return orjson.dumps({"type": "order"} | _order(order, status)).decode()


def _order(order: SandboxOrder, status: OrderStatus) -> dict[str, Any]:
    is_told_why = status in (OrderStatus.FAILED, OrderStatus.RETURNED)
    return {
        "reference": order.reference,
        "bank_reference": order.id,
        "amount": money.baht(order.amount),
        "currency": money.CURRENCY,
        "status": status.value,
        "reason": order.reason if is_told_why else "",
    }
