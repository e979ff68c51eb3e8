"""The fields of an account that staff enter."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from core import plain_text
from core.form_fields import PlainCharField
from transfers.serializers import Payee

ACCOUNT_FIELDS = ["bank_code", "bank_account", "account_name"]


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
