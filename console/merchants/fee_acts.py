"""What staff set about the fees of a merchant's bank, and how its page shows them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct, ReasonForm
from audit_trail.acts import Act
from core import clock
from core.clock import BANGKOK
from merchants.models import Merchant
from payments import fee_terms
from payments.fee_terms import MAX_FIXED, MAX_RATE, VAT_RATE, FeeTerms

SHOWN = 3


class FeeForm(ReasonForm):
    starts_on = forms.DateField(
        initial=lambda: clock.now().astimezone(BANGKOK).date() + timedelta(days=1),
        widget=forms.DateInput(attrs={"type": "date"}),
        label=gettext_lazy("First day"),
        help_text=gettext_lazy("In Bangkok, tomorrow at the earliest: payments keep the fee of their day."),
    )
    fixed = forms.DecimalField(
        min_value=0,
        max_value=Decimal(MAX_FIXED) / 100,
        decimal_places=2,
        initial=0,
        label=gettext_lazy("For each payment (THB)"),
    )
    rate = forms.DecimalField(
        min_value=0,
        max_value=Decimal(MAX_RATE) / 100,
        decimal_places=2,
        initial=0,
        label=gettext_lazy("Of the amount (%)"),
    )
    has_vat = forms.BooleanField(required=False, initial=True, label=gettext_lazy("7 % VAT on the fee"))
    is_of_standby = forms.BooleanField(required=False, label=gettext_lazy("Of payments at the stand-by"))

    def __init__(self, row: Merchant, data: Any = None, *, user: Any) -> None:
        super().__init__(row, data, user=user)
        if not row.standby_bank:
            del self.fields["is_of_standby"]


def _set(merchant: Merchant, values: dict[str, Any], now: datetime) -> FeeTerms:
    return fee_terms.set_terms(
        merchant,
        starts_on=values["starts_on"],
        fixed=int(values["fixed"] * 100),
        rate=int(values["rate"] * 100),
        vat_rate=VAT_RATE if values["has_vat"] else 0,
        now=now,
        is_of_standby=values.get("is_of_standby", False),
    )


FEE_ACTS = (
    ObjectAct(
        "set-fees", gettext_lazy("Set the fees of the bank"), Act.FEES_SET, "payments.set_fees",
        gettext_lazy(
            "From the first day on, the balance of %(name)s gets each payment by QR code less this fee "
            "and its VAT. Both are rounded to the satang, a half up. Earlier payments keep theirs."
        ),
        _set,
        words={"name": "name"}, form=FeeForm, is_recorded_by_service=True,
    ),
)  # fmt: skip


def shown(merchant: Merchant) -> Sequence[str]:
    """The newest terms in words, those that begin last first."""
    newest = FeeTerms.objects.filter(merchant=merchant).order_by("-starts_on")[:SHOWN]
    return [each.words for each in newest]
