"""How people of a merchant make a payment link."""

from datetime import datetime, time
from typing import Any

from django import forms
from django.db import transaction
from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from audit_trail.recording import recorded
from core import clock, money
from core.console.form_fields import BahtField
from links import services as links
from links.models import MAX_PAYMENTS, PaymentLink
from links.serializers import PaymentLinkRequest
from shop.acts import ShopForm

FIELDS = ("amount", "amount_min", "amount_max", "description", "reference", "max_payments")


class LinkForm(ShopForm):
    """What a customer shall pay, with the same checks as in the API."""

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
    description = forms.CharField(
        required=False,
        label=gettext_lazy("What it is for"),
        help_text=gettext_lazy("The customer reads it."),
    )
    reference = forms.CharField(
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
    expires_at = forms.DateField(
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        label=gettext_lazy("Last day"),
        help_text=gettext_lazy("In Bangkok. Empty: a year from now."),
    )

    def clean(self) -> dict[str, Any]:
        """`link`: the fields of the new link. Texts that are empty are not stored."""
        values = super().clean()
        if self.errors:
            return values
        given = {name: values[name] for name in FIELDS if values[name] or name == "max_payments"}
        if last_day := values["expires_at"]:
            end = datetime.combine(last_day, time(23, 59, 59, 999_000), clock.BANGKOK)
            given["expires_at"] = clock.iso(end)
        link = PaymentLinkRequest(data=given)
        if link.is_valid():
            return values | {"link": link.validated_data}
        for name, faults in link.errors.items():
            self.add_error(name, [str(fault) for fault in faults])
        return values


def _make(row: None, values: dict[str, Any], now: datetime) -> PaymentLink:
    with transaction.atomic(), recorded(Act.LINK_CREATED) as made:
        made.row = link = links.create(merchant=values["merchant"], now=now, **values["link"])
    return link


NEW_LINK_ACTS = (
    ObjectAct(
        "new", gettext_lazy("Make a payment link"), Act.LINK_CREATED, "shop.create_paymentlink",
        gettext_lazy(
            "Whoever opens the link can pay it by a Thai QR code. Send it to the customer, or print its code."
        ),
        _make,
        form=LinkForm, is_recorded_by_service=True,
    ),
)  # fmt: skip
