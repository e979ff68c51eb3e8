"""How people of a merchant make a payment link."""

from datetime import datetime, time, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct, ReasonForm
from audit_trail.acts import Act
from audit_trail.recording import recorded
from core import clock, money, plain_text
from core.console.form_fields import BahtField, PlainCharField
from links import services as links
from links.models import (
    LONGEST_LIFE,
    MAX_DESCRIPTION_LENGTH,
    MAX_PAYMENTS,
    MAX_REFERENCE_LENGTH,
    PaymentLink,
)
from qrcodes.serializers import DEFAULT_EXPIRY

AMOUNTS = {"amount", "amount_min", "amount_max"}


class LinkForm(ReasonForm):
    """What a customer shall pay: one amount, or the limits of an amount that the customer chooses."""

    amount = BahtField(
        smallest=money.MIN_AMOUNT,
        required=False,
        label=gettext_lazy("Amount in baht"),
        help_text=gettext_lazy("Empty if the customer chooses it, between the next two."),
    )
    amount_min = BahtField(
        smallest=money.MIN_AMOUNT, required=False, label=gettext_lazy("Smallest amount in baht")
    )
    amount_max = BahtField(
        smallest=money.MIN_AMOUNT, required=False, label=gettext_lazy("Largest amount in baht")
    )
    description = PlainCharField(
        plain=plain_text.visible,
        max_length=MAX_DESCRIPTION_LENGTH,
        required=False,
        label=gettext_lazy("What it is for"),
        help_text=gettext_lazy("The customer reads it."),
    )
    reference = PlainCharField(
        plain=plain_text.visible,
        max_length=MAX_REFERENCE_LENGTH,
        required=False,
        label=gettext_lazy("Reference"),
        help_text=gettext_lazy("Your order or invoice number."),
    )
    max_payments = forms.IntegerField(
        min_value=1,
        max_value=MAX_PAYMENTS,
        initial=1,
        required=False,
        label=gettext_lazy("How often it can be paid"),
        help_text=gettext_lazy("Empty: any number of times, such as for a code at the counter."),
    )
    last_day = forms.DateField(
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        label=gettext_lazy("Last day"),
        help_text=gettext_lazy("In Bangkok. Empty: a year from now."),
    )
    reason = forms.CharField(required=False, max_length=500, widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        """The fields of the new link."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if AMOUNTS & set(self.errors):
            return values
        given = {name: values[name] for name in AMOUNTS if values[name] is not None}
        if given.keys() not in ({"amount"}, {"amount_min", "amount_max"}):
            raise ValidationError({"amount": _("Enter an amount, or both the smallest and the largest one.")})
        if given.get("amount_min", 0) > given.get("amount_max", money.MAX_AMOUNT):
            raise ValidationError({"amount_max": _("It must be at least the smallest amount.")})
        if last_day := values.get("last_day"):
            ends = datetime.combine(last_day + timedelta(days=1), time.min, clock.BANGKOK)
            if not clock.now() < ends <= clock.now() + LONGEST_LIFE:
                raise ValidationError({"last_day": _("It must be today or later, and within a year.")})
            values["expires_at"] = ends
        values["merchant"] = self.user.membership.merchant
        return values


FIELDS = (
    *("merchant", "amount", "amount_min", "amount_max", "description", "reference", "max_payments"),
    "expires_at",
)


def _make(row: None, values: dict[str, Any], now: datetime) -> PaymentLink:
    # Texts that were not given are not stored.
    given = {name: values[name] for name in FIELDS if values.get(name) or name == "max_payments"}
    with transaction.atomic(), recorded(Act.LINK_CREATED) as made:
        made.row = link = links.create(now=now, expiry_minutes=DEFAULT_EXPIRY, **given)
    return link


NEW_LINK_ACTS = (
    ObjectAct(
        slug="new",
        label=gettext_lazy("Make a payment link"),
        act=Act.LINK_CREATED,
        permission="shop.create_paymentlink",
        explain=lambda row: _(
            "Whoever opens the link can pay it by a Thai QR code. Send it to the customer, or print its code."
        ),
        run=_make,
        form=LinkForm,
        is_recorded_by_service=True,
    ),
)
