"""The forms of acts on exceptions."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from audit_trail.act_pages import ReasonForm
from core import plain_text
from core.form_fields import PlainCharField
from reconciliation.exceptions import act_explanations
from transfers.serializers import Payee

ACCOUNT_FIELDS = ["bank_code", "bank_account", "account_name"]


class AttachForm(ReasonForm):
    """The payment is that of the link."""

    payment_id = PlainCharField(plain=plain_text.visible, widget=forms.HiddenInput)

    def explanation(self) -> str:
        values = self.cleaned_data if self.is_bound else self.initial
        return act_explanations.attach(self.row, values.get("payment_id"))


class AccountFields(forms.Form):
    """An account that staff enter, with the same checks as in the API."""

    bank_code = PlainCharField(
        plain=plain_text.visible,
        max_length=10,
        label=_("Bank"),
        help_text=_("Its code or short name: 014 or SCB."),
    )
    bank_account = PlainCharField(
        plain=plain_text.compact, max_length=20, label=_("Account"), help_text=_("Digits only.")
    )
    account_name = PlainCharField(plain=plain_text.name, max_length=140, label=_("Account holder"))

    def clean(self) -> dict[str, Any]:
        filled = super().clean() or self.cleaned_data
        payee = Payee(data={name: filled[name] for name in ACCOUNT_FIELDS if name in filled})
        if payee.is_valid():
            return {**filled, **payee.validated_data}
        for name, faults in payee.errors.items():
            if name in filled:
                self.add_error(name, [str(fault) for fault in faults])
        return filled


class AccountForm(AccountFields, ReasonForm):
    """Staff see once more what they typed, because nobody can take the money back."""

    asks_twice = True

    def explanation(self) -> str:
        return act_explanations.send_to_account(self.row, self.cleaned_data) if self.is_valid() else ""


class ManualReturnForm(ReasonForm):
    bank_reference = PlainCharField(
        plain=plain_text.visible,
        max_length=64,
        label=_("Bank's reference"),
        help_text=_("The bank's reference of the transfer that you made."),
    )
