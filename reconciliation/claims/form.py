"""The form of the claim page: a proof of the payment, and the account that the refund goes to."""

import unicodedata
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.core.validators import RegexValidator
from django.utils.text import capfirst
from django.utils.translation import gettext as _, gettext_lazy

from core import plain_text
from core.console.form_fields import PlainCharField
from core.thai import thaibanks

MAX_REFERENCE_LENGTH, MAX_NAME_LENGTH = 64, 140
PROOFS = ("picture", "slip_reference", "last_digits")
ACCOUNT = ("bank_code", "bank_account", "account_name")


class ClaimForm(forms.Form):
    """A proof of the payment, and an account."""

    picture = forms.FileField(
        required=False,
        allow_empty_file=True,
        label=gettext_lazy("Picture of the slip"),
        help_text=gettext_lazy(
            "A screenshot or a photograph that shows the small QR code. It is not stored."
        ),
        widget=forms.FileInput(attrs={"accept": "image/png,image/jpeg,image/webp"}),
    )
    slip_reference = PlainCharField(
        plain=plain_text.visible,
        required=False,
        max_length=MAX_REFERENCE_LENGTH,
        label=gettext_lazy("Or the reference on the slip"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "characters"}),
    )
    last_digits = PlainCharField(
        plain=plain_text.compact,
        required=False,
        label=gettext_lazy("Or the last 4 digits of the account that you paid from"),
        validators=[RegexValidator(r"\A[0-9]{4}\Z", gettext_lazy("Write 4 digits."))],
        widget=forms.TextInput(attrs={"autocomplete": "off", "inputmode": "numeric"}),
    )
    bank_code = forms.ChoiceField(label=gettext_lazy("Your bank"))
    bank_account = PlainCharField(
        plain=plain_text.compact,
        max_length=30,
        label=gettext_lazy("Your account number"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "inputmode": "numeric"}),
    )
    account_name = PlainCharField(
        plain=plain_text.name,
        max_length=MAX_NAME_LENGTH,
        label=gettext_lazy("Name of the account"),
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )

    def __init__(self, data: Any = None, files: Any = None) -> None:
        super().__init__(data, files, label_suffix="")
        for field in self.fields.values():
            field.error_messages["required"] = _("Fill in this field.")
        self.fields["bank_code"].choices = thaibanks.choices()  # type: ignore[attr-defined]

    def clean_picture(self) -> "UploadedFile[bytes] | None":
        picture: UploadedFile[bytes] | None = self.cleaned_data["picture"]
        if picture is not None and len(self.files.getlist("picture")) > 1:
            raise forms.ValidationError(_("Choose one picture."))
        return picture

    def clean_account_name(self) -> str:
        name = str(self.cleaned_data["account_name"])
        if any(unicodedata.category(character).startswith("C") for character in name):
            raise forms.ValidationError(_("Write the name in one line."))
        return name

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if not self.errors and not any(values[name] for name in PROOFS):
            self.add_error("picture", _("Choose a picture, or give the reference or the last 4 digits."))
        if not self.errors:
            try:
                thaibanks.check_account(values["bank_code"], values["bank_account"])
            except ValueError as refusal:
                self.add_error("bank_account", f"{capfirst(str(refusal))}.")
        if self.errors:
            self.ask_for_picture_again()
        return values

    def ask_for_picture_again(self) -> None:
        """Browsers do not keep it when the page comes back."""
        if self.cleaned_data.get("picture"):
            self.add_error("picture", _("Choose the picture again."))
