"""The form for a new API key: scopes, networks and lifetime."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from core.scopes import Scope
from merchants import services
from merchants.models import ApiKey, Merchant

MAX_HOURS = 10 * 366 * 24


class IssueKeyForm(forms.Form):
    scopes = forms.MultipleChoiceField(
        choices=Scope.choices, widget=forms.CheckboxSelectMultiple, label=_("What the key may do")
    )
    networks = forms.CharField(
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 40}),
        label=_("Networks from which it may be used"),
        help_text=_("One network per line, such as 203.0.113.0/24. Leave empty to allow any."),
    )
    hours = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_HOURS,
        label=_("Expires after (hours)"),
        help_text=_("Leave empty for a key without expiry."),
    )

    def __init__(self, *args: Any, may_withdraw: bool, **kwargs: Any) -> None:
        """may_withdraw: whether the scope to withdraw is offered and accepted."""
        super().__init__(*args, **kwargs)
        offered = [choice for choice in Scope.choices if may_withdraw or choice[0] != Scope.WITHDRAWALS_WRITE]
        scopes: Any = self.fields["scopes"]
        scopes.choices, scopes.initial = offered, [value for value, _ in offered]

    def issue(self, merchant: Merchant, now: datetime) -> tuple[ApiKey, str] | None:
        """The new key and its secret, or None if the form has errors."""
        if not self.is_valid():
            return None
        filled = self.cleaned_data
        expires_at = now + timedelta(hours=filled["hours"]) if filled["hours"] else None
        try:
            return services.issue_key(
                merchant=merchant,
                now=now,
                expires_at=expires_at,
                scopes=filled["scopes"],
                networks=filled["networks"].replace(",", " ").split(),
            )
        except ValidationError as error:
            self.add_error(None, error)
            return None
