"""How people of a merchant add and delete destinations of messages."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from webhooks import endpoints
from webhooks.acts import ENDPOINT_ACTS, NEW_DESTINATION_ACTS
from webhooks.destinations import TYPES
from webhooks.errors import DestinationNotFound
from webhooks.forms import DestinationForm
from webhooks.messages import texts
from webhooks.models import Endpoint, EventType

PERMISSION = "shop.manage_destinations"


class ShopDestinationForm(DestinationForm):
    events = forms.MultipleChoiceField(
        choices=[(each.value, texts.WORDS[each]) for each in EventType],
        initial=[EventType.PAYMENT_SUCCEEDED, EventType.PAYMENT_EXCEPTION],
        widget=forms.CheckboxSelectMultiple,
        label=gettext_lazy("Events"),
    )
    reason = forms.CharField(required=False, max_length=500, widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        return (super().clean() or self.cleaned_data) | {"merchant": self.user.membership.merchant}


def _is_there(endpoint: Endpoint, now: datetime) -> bool:
    return endpoint.type in TYPES and endpoint.deleted_at is None


def _end(endpoint: Endpoint, values: dict[str, Any], now: datetime) -> None:
    if endpoint.type not in TYPES:
        raise DestinationNotFound(id=endpoint.pk)
    endpoints.delete(
        merchant=endpoint.merchant, webhook_id=endpoint.pk, now=now, not_found=DestinationNotFound
    )


(_add,) = NEW_DESTINATION_ACTS
_delete = next(each for each in ENDPOINT_ACTS if each.slug == "delete")
NEW_MESSAGES_ACTS = (
    replace(
        _add,
        label=gettext_lazy("Get messages by LINE or email"),
        permission=PERMISSION,
        explain=lambda row: _("A short text comes when money arrives. Send a test on the next page."),
        form=ShopDestinationForm,
    ),
)
MESSAGES_ACTS = (
    *(each for each in ENDPOINT_ACTS if each is not _delete),
    replace(_delete, permission=PERMISSION, run=_end, is_possible=_is_there),
)
