"""The forms of actions on exceptions."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from core import ids, plain_text
from core.form_fields import PlainCharField
from transfers.serializers import Payee

MAX_NOTE_LENGTH = 500
ACCOUNT_FIELDS = ["bank_code", "bank_account", "account_name"]


class NoteForm(forms.Form):
    note = forms.CharField(
        max_length=MAX_NOTE_LENGTH,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 80}),
        label=_("Note"),
        help_text=_("The reason and your source. Other staff can read this later."),
    )


class AttachForm(NoteForm):
    payment_id = PlainCharField(plain=plain_text.visible, widget=forms.HiddenInput)

    def clean_payment_id(self) -> str:
        given = str(self.cleaned_data["payment_id"])
        if not ids.looks_right(given, "pay_"):
            raise forms.ValidationError(_("The id of a payment begins with pay_."))
        return given


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


class AccountForm(AccountFields, NoteForm):
    field_order = [*ACCOUNT_FIELDS, "note"]


class ManualReturnForm(NoteForm):
    bank_reference = PlainCharField(
        plain=plain_text.visible,
        max_length=64,
        label=_("Bank's reference"),
        help_text=_("The bank's reference of the transfer that you made."),
    )
    field_order = ["bank_reference", "note"]
