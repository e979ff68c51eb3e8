"""The operations on webhooks in the OpenAPI document."""

from functools import partial
from typing import Annotated, NotRequired, TypedDict

from core.http.openapi import Tag, described
from core.http.paging import Limit, Offset, Page, PageQuery, Total
from core.http.scopes import Scope
from webhooks.serializers import (
    DeliveryQuery,
    DestinationChangeRequest,
    EventQuery,
    NewDestinationRequest,
    ReplayRequest,
    SecretRequest,
    WebhookChangeRequest,
    WebhookRequest,
)
from webhooks.shapes import (
    DeliveryObject,
    DestinationObject,
    EventObject,
    ReplayResultObject,
    WebhookObject,
    WebhookSecret,
)


class _EventPage(TypedDict):
    total: Annotated[Total, "The number of all results; with `after_sequence`, of those that follow it."]
    limit: Limit
    offset: NotRequired[Annotated[Offset, "Absent with `after`, `before` or `after_sequence`."]]


_write = partial(described, __file__, tag=Tag.WEBHOOKS, scope=Scope.WEBHOOKS_WRITE)
_read = partial(described, __file__, tag=Tag.WEBHOOKS, scope=Scope.PAYMENTS_READ)

create = _write("create_webhook", body=WebhookRequest, response=WebhookObject)
list_ = _read("list_webhooks", query=PageQuery, response=WebhookObject, rows="webhooks", page={"base": Page})
retrieve = _read("get_webhook", response=WebhookObject)
change = _write("change_webhook", body=WebhookChangeRequest, response=WebhookObject)
destroy = _write("delete_webhook")
secret = _write("get_webhook_secret", response=WebhookSecret)
rotate_secret = _write("rotate_webhook_secret", body=SecretRequest, response=WebhookObject)
list_events = _read(
    "list_events", query=EventQuery, response=EventObject, rows="events", page={"base": _EventPage}
)
get_event = _read("get_event", response=EventObject)
list_deliveries = _read(
    "list_webhook_deliveries", query=DeliveryQuery, response=DeliveryObject, rows="deliveries"
)
test = _write("test_webhook", response=DeliveryObject)
redeliver = _write("redeliver_webhook_delivery", response=DeliveryObject)
replay = _write("replay_webhook", body=ReplayRequest, response=ReplayResultObject)

_manage = partial(described, __file__, tag=Tag.WEBHOOKS, scope=Scope.DESTINATIONS_WRITE)
create_destination = _manage("create_destination", body=NewDestinationRequest, response=DestinationObject)
list_destinations = _read(
    "list_destinations", query=PageQuery, response=DestinationObject, rows="destinations", page={"base": Page}
)
get_destination = _read("get_destination", response=DestinationObject)
change_destination = _manage("change_destination", body=DestinationChangeRequest, response=DestinationObject)
delete_destination = _manage("delete_destination")
test_destination = _manage("test_destination", response=DeliveryObject)
list_destination_deliveries = _read(
    "list_destination_deliveries", query=DeliveryQuery, response=DeliveryObject, rows="deliveries"
)
