"""What staff fill in for an act on an exception."""

from typing import Any

from django import forms

from core import ids
from transfers.payees import Payee

LONGEST_WHY = 500
ACCOUNT = ["bank_code", "bank_account", "account_name"]


class WhyForm(forms.Form):
    why = forms.CharField(
        max_length=LONGEST_WHY,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 80}),
        label="Why",
        help_text="For whoever reads this later: what you know, and who said so.",
    )


class AttachForm(WhyForm):
    payment = forms.CharField(widget=forms.HiddenInput)

    def clean_payment(self) -> str:
        given = str(self.cleaned_data["payment"]).strip()
        if not ids.looks_right(given, "pay_"):
            raise forms.ValidationError("The id of a payment begins with pay_.")
        return given


class AccountForm(WhyForm):
    """An account that staff name, judged like those that merchants name."""

    bank_code = forms.CharField(max_length=10, label="Bank", help_text="Its code or short name: 014 or SCB.")
    bank_account = forms.CharField(max_length=20, label="Account", help_text="Digits and nothing else.")
    account_name = forms.CharField(max_length=140, label="Name of the holder")
    field_order = [*ACCOUNT, "why"]

    def clean(self) -> dict[str, Any]:
        filled = super().clean() or self.cleaned_data
        payee = Payee(data={name: filled[name] for name in ACCOUNT if name in filled})
        if payee.is_valid():
            return {**filled, **payee.validated_data}
        for name, faults in payee.errors.items():
            if name in filled:
                self.add_error(name, [str(fault) for fault in faults])
        return filled


class ByHandForm(WhyForm):
    bank_reference = forms.CharField(
        max_length=64, label="Bank's reference", help_text="Of the transfer that you made."
    )
    field_order = ["bank_reference", "why"]
