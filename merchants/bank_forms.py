"""The form that connects a merchant to its bank. It has the credentials that the adapter declares.

A stored secret is never in a page. To renew a connection, a secret may be left empty to keep it.
"""

from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext, gettext_lazy as _

import banks
from audit_trail.act_pages import ReasonForm
from banks import CredentialField
from merchants import bank_connections
from merchants.bank_connections import ConnectionConfig
from merchants.models import BankConnection, Merchant

MAX_CREDENTIAL = 10_000
# A field with this prefix never comes back in a page. After an error, the field DROPPED of the form names it,
# so that an empty field is not taken for the wish to keep a stored secret.
SECRET_PREFIX, DROPPED = "secret_", "dropped"
TERMS = ("biller_id", "reference2", "reference3")


class SecretText(forms.Textarea):
    """A secret of several lines. Like a password, it does not come back after an error."""

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        return super().get_context(name, None, attrs)


class ConnectionForm(ReasonForm):
    """What the bank and the merchant agreed on. Subclasses name the bank."""

    bank: ClassVar[str]
    is_renewal: ClassVar[bool]

    biller_id = forms.CharField(
        max_length=15, label=_("Biller id"), help_text=_("15 digits, given by the bank.")
    )
    reference2 = forms.CharField(
        required=False, max_length=20, label=_("Reference 2"), help_text=_("Sent in each code if given.")
    )
    reference3 = forms.CharField(
        required=False, max_length=20, label=_("Reference 3"), help_text=_("Sent in each code if given.")
    )
    callers = forms.CharField(
        required=False,
        max_length=3000,
        widget=forms.Textarea(attrs={"rows": 3}),
        label=_("Networks from which the bank calls"),
        help_text=_("One network per line, such as 203.0.113.0/24. Leave empty to allow any."),
    )
    renew_address = forms.BooleanField(
        required=False,
        label=_("Make a new notification address"),
        help_text=_("The old address stops working at once. Register the new one within the hour."),
    )
    dropped = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, row: Merchant, data: Any = None, *, user: Any) -> None:
        super().__init__(row, data, user=user)
        self.credentials = banks.LIVE_BANKS[self.bank].credential_fields
        self.connection = BankConnection.objects.filter(merchant=row, bank=self.bank).first()
        if self.connection is None or not self.is_renewal:
            stored: dict[str, str] = {}
            del self.fields["renew_address"]
        else:
            stored = bank_connections.stored_credentials(self.connection)
            for name in TERMS:
                self.fields[name].initial = getattr(row.terms_at(self.bank), name)
            self.fields["callers"].initial = "\n".join(self.connection.callers)
        for each in self.credentials:
            self.fields[_name(each)] = _field(each, stored)
        if reference3_help := banks.LIVE_BANKS[self.bank].reference3_help:
            self.fields["reference3"].required = True
            self.fields["reference3"].help_text = gettext(reference3_help)
        if data is not None:
            self._require_dropped(data)
        names = map(_name, self.credentials)
        self.order_fields([*TERMS, *names, "callers", "renew_address", "reason"])

    def config(self) -> ConnectionConfig:
        """What was entered. Secrets that were left empty are not in it."""
        values = self.cleaned_data
        given = {each.name: values.get(_name(each), "") for each in self.credentials}
        return ConnectionConfig(
            bank=self.bank,
            **{name: values.get(name, "") for name in TERMS},
            credentials={name: value for name, value in given.items() if value},
            callers=str(values.get("callers", "")).replace(",", " ").split(),
        )

    def clean(self) -> dict[str, Any] | None:
        """Name the faults of all fields at once. The service decides in the end."""
        values = super().clean() or self.cleaned_data
        config = self.config()
        try:
            bank_connections.validated_terms(config)
        except ValidationError as refusal:
            for name, errors in refusal.error_dict.items():
                if name not in self.errors:
                    self.add_error(name, errors)
        if self.is_renewal and self.connection is not None:
            kept = bank_connections.kept_secrets(self.connection, config)
            for each in self.credentials:
                name = _name(each)
                is_missing = each.is_secret and each.default is None and each.name not in kept
                if is_missing and not self.cleaned_data.get(name) and name not in self.errors:
                    self.add_error(name, _("Enter it again, because the address of the API is another one."))
        return {**values, "config": config}

    def _require_dropped(self, data: Any) -> None:
        """A secret that was typed and did not come back must be typed again: an empty field keeps the old."""
        names = {name for value in data.getlist(DROPPED) for name in value.split(",")}
        names |= {_name(each) for each in self.credentials if each.is_secret and data.get(_name(each))}
        for name in names & set(self.fields):
            self.fields[name].required = True
            self.fields[name].help_text = gettext("Enter it again: a secret is never shown.")
        shown = data.copy()
        shown[DROPPED] = ",".join(sorted(names & set(self.fields)))
        self.data = shown


def form_of(bank: str, *, is_renewal: bool) -> type[ConnectionForm]:
    """The form for this bank."""
    return type("ConnectionForm", (ConnectionForm,), {"bank": bank, "is_renewal": is_renewal})


def _name(credential: CredentialField) -> str:
    prefix = SECRET_PREFIX if credential.is_secret else "credential_"
    return f"{prefix}{credential.name}"


def _field(credential: CredentialField, stored: dict[str, str]) -> forms.CharField:
    is_kept = credential.is_secret and credential.name in stored
    return forms.CharField(
        required=credential.default is None and not is_kept,
        max_length=MAX_CREDENTIAL,
        initial="" if credential.is_secret else stored.get(credential.name, credential.default or ""),
        label=gettext(credential.help),
        help_text=gettext("Leave it empty to keep the stored one.") if is_kept else "",
        widget=_widget(credential),
        validators=[_validator(credential)],
    )


def _widget(credential: CredentialField) -> forms.Widget:
    attributes = {"autocomplete": "off", "spellcheck": "false"}
    if credential.is_text:
        attributes |= {"rows": "4"}
        if credential.is_secret:
            return SecretText(attributes | {"class": "secret-text"})
        return forms.Textarea(attributes)
    if credential.is_secret:
        # Otherwise browsers offer the password of the member of staff.
        return forms.PasswordInput(attributes | {"autocomplete": "new-password"})
    return forms.TextInput(attributes)


def _validator(credential: CredentialField) -> Any:
    def validate(value: str) -> None:
        try:
            credential.check_host(credential.normalise(value), settings.BANK_API_HOSTS)
        except ValueError as error:
            raise ValidationError(gettext("The value %(reason)s.") % {"reason": error}) from None

    return validate
