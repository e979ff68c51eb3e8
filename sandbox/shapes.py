"""Objects of the sandbox bank as plain data."""

from datetime import datetime
from typing import Any

import orjson

from core import money
from core.clock import BANGKOK
from sandbox.models import SandboxEntry, SandboxEntryType, SandboxOrder, SandboxOrderStatus, SandboxPayment


def payment_object(payment: SandboxPayment) -> dict[str, Any]:
    return {"bank_transaction_id": payment.id, "scenario": payment.scenario, "accepted": True}


def notification_body(entry: SandboxEntry) -> str:
    """The body of a callback."""
    return orjson.dumps(entry_object(entry)).decode()


def entry_object(entry: SandboxEntry) -> dict[str, str]:
    """What the bank says of an entry, in a callback and when it is asked."""
    payment = entry.payment
    return {
        "transaction_id": payment.id,
        "type": entry.type,
        "biller_id": payment.biller_id,
        "reference1": payment.reference1,
        "reference2": payment.reference2,
        "reference3": payment.reference3,
        "amount": money.baht(payment.amount),
        "currency": money.CURRENCY,
        "paid_at": entry.occurred_at.astimezone(BANGKOK).isoformat(timespec="milliseconds"),
        "payer_name": payment.payer_name,
        "payer_bank_code": payment.payer_bank_code,
        "payer_account": payment.payer_account,
        "slip_reference": "" if entry.type == SandboxEntryType.DECLINE else payment.slip_reference,
    }


def order_object(order: SandboxOrder, now: datetime) -> dict[str, Any]:
    """What the bank says of an order when asked at `now`."""
    return _order(order, order.status_at(now))


def order_notification_body(order: SandboxOrder, status: SandboxOrderStatus) -> str:
    """The body of a callback about an order."""
    return orjson.dumps({"type": "order"} | _order(order, status)).decode()


def _order(order: SandboxOrder, status: SandboxOrderStatus) -> dict[str, Any]:
    is_told_why = status in (SandboxOrderStatus.FAILED, SandboxOrderStatus.RETURNED)
    return {
        "reference": order.reference,
        "bank_reference": order.id,
        "amount": money.baht(order.amount),
        "currency": money.CURRENCY,
        "status": status.value,
        "reason": order.reason if is_told_why else "",
    }
