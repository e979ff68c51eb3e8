"""Factories for rows, for tests that need many of them or special columns."""

from datetime import timedelta
from typing import Any

import factory
from django.db import transaction

from core import clock, ids
from merchants.models import Merchant
from payments.models import Payment
from refunds.models import Refund, RefundReversal
from transactions.models import Transaction


class MerchantFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = Merchant

    created_at = factory.LazyFunction(clock.now)
    id = factory.LazyAttribute(lambda row: ids.new("mch_", row.created_at))
    name = factory.Sequence(lambda number: f"Shop {number}")
    mode = "test"
    bank = "sandbox"
    biller_id = factory.LazyFunction(lambda: ids.random_text(15, "0123456789"))


class PaymentFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = Payment

    merchant = factory.SubFactory(MerchantFactory)
    created_at = factory.LazyFunction(clock.now)
    updated_at = factory.SelfAttribute("created_at")
    id = factory.LazyAttribute(lambda row: ids.new("pay_", row.created_at))
    qr_code_id = factory.LazyAttribute(lambda row: ids.of_code(row.id))
    status = "pending"
    amount = 150_000
    currency = "THB"
    expires_at = factory.LazyAttribute(lambda row: row.created_at + timedelta(minutes=15))


class TransactionFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = Transaction

    merchant = factory.SubFactory(MerchantFactory)
    created_at = factory.LazyFunction(clock.now)
    id = factory.LazyAttribute(lambda row: ids.new("txn_", row.created_at))
    payment_id = factory.LazyAttribute(lambda row: ids.new("pay_", row.created_at))
    type = "payment"
    status = "succeeded"
    amount = 150_000
    currency = "THB"


@transaction.atomic
def reverse_all(payment: Payment) -> Refund:
    """Store the rows of a reversal by the bank, so that the payment can become refunded."""
    at, refund_id = clock.now(), ids.new("ref_", clock.now())
    amounts = {"amount": payment.amount, "refunded_amount": payment.amount}
    reversal = RefundReversal.objects.create(
        reversal_id=ids.new("btx_", at), payment=payment, route="bank:sandbox", created_at=at, **amounts
    )
    row = TransactionFactory(
        merchant=payment.merchant,
        payment_id=payment.id,
        type="refund",
        amount=-payment.amount,
        refund_id=refund_id,
    )
    made: Refund = Refund.objects.create(
        id=refund_id,
        merchant=payment.merchant,
        payment=payment,
        transaction=row,
        amount=payment.amount,
        currency=payment.currency,
        status="completed",
        route=reversal.route,
        reversal=reversal,
        created_at=at,
        updated_at=at,
        completed_at=at,
    )
    return made


def qr_request(**changes: Any) -> dict[str, Any]:
    """The body of a request for a QR code over 1,500.00 THB."""
    return {"amount": 150_000, "currency": "THB"} | changes
