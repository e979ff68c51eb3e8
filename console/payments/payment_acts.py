"""What staff can do to a payment."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext as _, gettext_lazy

from audit_trail.act_pages import ObjectAct, ReasonForm
from audit_trail.acts import Act
from core import money
from core.console.form_fields import BahtField
from payments import services as payments
from payments.models import Payment, PaymentStatus
from qrcodes import services as qr_codes
from refunds import services as refunds
from refunds.models import Refund


class RefundForm(ReasonForm):
    """The amount of a refund in baht, and its reason for the merchant."""

    amount = BahtField(largest=None, label=gettext_lazy("Amount in baht"))
    kind = forms.ChoiceField(label=gettext_lazy("Kind"))

    def __init__(self, row: Payment, data: Any = None, *, user: Any) -> None:
        super().__init__(row, data, user=user)
        kinds: Any = self.fields["kind"]
        kinds.choices = Refund._meta.get_field("reason").flatchoices  # in the language of the reader
        self.fields["amount"].initial = money.baht(row.refundable_amount)

    def clean_amount(self) -> int:
        """Satang, at most what is left."""
        satang: int = self.cleaned_data["amount"]
        if satang > self.row.refundable_amount:
            left = money.display(self.row.refundable_amount)
            raise forms.ValidationError(_("At most %(left)s can be refunded.") % {"left": left})
        return satang


def _explain_refund(payment: Payment) -> str:
    values = {"left": money.display(payment.refundable_amount), "received": money.display(payment.received)}
    text = _(
        "Up to %(left)s of %(received)s goes back to the payer, and leaves the merchant's balance. A refund "
        "that the bank has got cannot be canceled. Above the limit a second person must approve it."
    )
    return text % values


def _expire(payment: Payment, values: dict[str, Any], now: datetime) -> None:
    assert payment.qr_code_id is not None, "only payments with a code are offered"
    qr_codes.expire(merchant=payment.merchant, qr_code_id=payment.qr_code_id, now=now)


PAYMENT_ACTS = (
    ObjectAct(
        "refund", gettext_lazy("Refund"), Act.REFUND_CREATED, "refunds.create_refund",
        _explain_refund,
        lambda payment, values, now: refunds.create(
            merchant=payment.merchant,
            payment_id=payment.id,
            amount=values["amount"],
            reason=values["kind"],
            note=values["reason"][:255],
            now=now,
        ),
        is_possible=lambda payment, now: (
            payment.status == PaymentStatus.SUCCEEDED and payment.refundable_amount > 0
        ),
        form=RefundForm, is_dangerous=True,
    ),
    ObjectAct(
        "expire", gettext_lazy("Expire the code"), Act.CODE_EXPIRED, "qrcodes.expire_qrcode",
        gettext_lazy(
            "The code can no longer be paid, and the merchant gets payment.failed. Nothing can undo this."
        ),
        _expire,
        is_possible=lambda payment, now: (
            payment.qr_code_id is not None and payment.status_at(now) == PaymentStatus.PENDING
        ),
        is_dangerous=True,
    ),
    ObjectAct(
        "lift-hold", gettext_lazy("Lift the hold"), Act.HOLD_LIFTED, "payments.lift_hold",
        gettext_lazy(
            "The merchant gets payment.hold_lifted, and ships. Do it when you know who paid, and why."
        ),
        lambda payment, values, now: payments.lift_hold(payment.merchant, payment.id, now=now),
        is_possible=lambda payment, now: payment.hold is not None,
    ),
)  # fmt: skip
