"""Orders that a bank carried out and a restored database does not have: record them again under their ids.

The order becomes queued, as at its first time, with all rules: balance, limits, payout accounts. In safe mode
queued orders are not sent but looked for at their bank, which has this one. So it ends as usual.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import banks
from audit_trail.acts import Act
from audit_trail.recording import recorded
from banks import TransferOrder, TransferPurpose
from core import ids
from ledger import accounts
from merchants import bank_connections
from merchants.models import Merchant
from payments.errors import PaymentNotFound
from payments.models import Payment
from refunds import destinations, services as refunds
from refunds.models import RefundReason
from transfers import safe_mode, services as transfers
from withdrawals import services as withdrawals

Payee = Mapping[str, str]
KNOWN = ("processing", "succeeded", "failed", "returned")


class NotLost(Exception):
    """The order cannot be recorded. The text says why."""


def record_withdrawal(
    order_id: str, merchant: Merchant, payee: Payee, *, amount: int, reason: str, now: datetime
) -> str:
    """Record a withdrawal; return the bank's answer about it. payee: as in a request.

    Raises NotLost, and what `withdrawals.services.create` raises.
    """
    _check(order_id, "wd_")
    answer = _ask_bank(_order(order_id, "withdrawal", amount), accounts.bank(merchant.bank), merchant.id)
    with recorded(Act.LOST_ORDER_RECORDED, reason=reason) as recording:
        recording.row = withdrawals.create(
            merchant=merchant, withdrawal_id=order_id, amount=amount, now=now, **payee
        )
    return answer


def record_refund(
    order_id: str, payment_id: str, payee: Payee | None, *, amount: int, reason: str, now: datetime
) -> str:
    """Record a refund; return the bank's answer about it. payee: None is the payer's account or card.

    Raises NotLost, and what `refunds.services.create` raises.
    """
    _check(order_id, "ref_")
    payment = Payment.objects.select_related("merchant").filter(pk=payment_id).first()
    if payment is None:
        raise PaymentNotFound(id=payment_id)
    to = destinations.choose(payment, payee, amount, now=now)
    if to is None:
        raise NotLost("The account of the payer is not known: name the account that got the money.")
    order = _order(order_id, "refund", amount, charge_id=to.charge_id)
    answer = _ask_bank(order, to.route, payment.merchant_id)
    with recorded(Act.LOST_ORDER_RECORDED, reason=reason) as recording:
        recording.row = refunds.create(
            merchant=payment.merchant,
            payment_id=payment_id,
            refund_id=order_id,
            amount=amount,
            destination=payee,
            reason=RefundReason.OTHER,
            now=now,
        )
    return answer


def _check(order_id: str, prefix: str) -> None:
    if not ids.looks_right(order_id, prefix):
        raise NotLost(f"{order_id} is no id that begins with {prefix}.")
    if transfers.exists(order_id):
        raise NotLost(f"{order_id} is in this database.")
    if not safe_mode.is_on():
        raise NotLost("Safe mode is off, so the order could be sent again: run pause_transfers first.")


def _order(order_id: str, purpose: TransferPurpose, amount: int, **fields: Any) -> TransferOrder:
    """The order as far as an inquiry needs it."""
    empty = {"bank_code": "", "account": "", "account_name": "", "charge_id": ""}
    return TransferOrder(order_id=order_id, purpose=purpose, amount=amount, **(empty | fields))


def _ask_bank(order: TransferOrder, route: str, merchant_id: str) -> str:
    """The bank's answer about the order. Raises NotLost unless the bank has it, with this amount."""
    sender = banks.sender(route, bank_connections.credentials_of(merchant_id, route))
    status = sender.inquire(order).status
    if status not in KNOWN:
        raise NotLost(f"{route} does not say that it has {order.order_id} with this amount: {status}.")
    return status
