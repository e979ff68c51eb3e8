"""How people of a merchant add, change and end webhooks, and destinations of messages."""

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from django import forms
from django.utils.translation import gettext as _, gettext_lazy

from audit_trail.act_pages import ObjectAct, ShownOnce
from audit_trail.acts import Act
from audit_trail.recording import recorded
from shop.acts import ShopForm
from webhooks import endpoints
from webhooks.acts import DELETE_ACT, ENDPOINT_ACTS, NEW_DESTINATION_ACTS
from webhooks.forms import DestinationForm, events_field
from webhooks.http.url_check import MAX_URL_LENGTH
from webhooks.models import Endpoint, EndpointType, EventType

PERMISSION = "shop.manage_endpoints"


class ShopDestinationForm(ShopForm, DestinationForm):
    events = events_field(EventType, [EventType.PAYMENT_SUCCEEDED, EventType.PAYMENT_EXCEPTION])


class WebhookForm(ShopForm):
    """Begins with the URL and the events that the webhook has."""

    url = forms.CharField(
        max_length=MAX_URL_LENGTH,
        label=gettext_lazy("Address"),
        help_text=gettext_lazy("It begins with https, is public, and answers a POST request now."),
    )
    events = events_field(EventType, list(EventType))

    def __init__(self, row: Endpoint | None, data: Any = None, *, user: Any) -> None:
        super().__init__(row, data, user=user)
        if row is not None:
            self.initial.update(url=row.url, events=row.events)


def _add(row: None, values: dict[str, Any], now: datetime) -> ShownOnce:
    """The URL is probed outside of the transaction."""
    given = {name: values[name] for name in ("merchant", "url", "events")}
    webhook = endpoints.prepare(now=now, **given)
    with recorded(Act.ENDPOINT_ADDED) as added:
        endpoints.store(webhook)
        added.row = webhook
    text = _("The secret by which your program checks the messages to %(url)s.")
    return ShownOnce(webhook, text % {"url": webhook.url}, webhook.secret)


def _change(webhook: Endpoint, values: dict[str, Any], now: datetime) -> None:
    moved = endpoints.move(webhook, values["url"], now=now)
    with recorded(Act.ENDPOINT_CHANGED, webhook):
        endpoints.update(webhook, now=now, moved=moved, events=values["events"])


_manage = partial(ObjectAct, permission=PERMISSION, form=WebhookForm, is_recorded_by_service=True)
NEW_ENDPOINT_ACTS = (
    _manage(
        "add-webhook", gettext_lazy("Add a webhook"), Act.ENDPOINT_ADDED,
        explain=gettext_lazy("Your program is told what happens. The next page shows its secret once."),
        run=_add,
    ),
    *(
        replace(
            each,
            label=gettext_lazy("Get messages by LINE or email"),
            permission=PERMISSION,
            explain=gettext_lazy("A short text comes when money arrives. Send a test on the next page."),
            form=ShopDestinationForm,
        )
        for each in NEW_DESTINATION_ACTS
    ),
)  # fmt: skip
SHOP_ENDPOINT_ACTS = (
    *ENDPOINT_ACTS,
    _manage(
        "change", gettext_lazy("Change the webhook"), Act.ENDPOINT_CHANGED,
        explain=gettext_lazy("Its secret stays. A new address must answer a POST request now."),
        run=_change,
        is_possible=lambda row, now: row.type == EndpointType.WEBHOOK and row.deleted_at is None,
    ),
    replace(
        DELETE_ACT,
        permission=PERMISSION,
        run=lambda endpoint, values, now: endpoints.delete(endpoint, now=now),
        is_possible=lambda endpoint, now: endpoint.deleted_at is None,
    ),
)  # fmt: skip
