"""The operations on webhooks, as the OpenAPI document tells them."""

from core.openapi import Link, Operation, Shown, Tag
from core.paging import PageQuery
from webhooks.errors import WebhookNotFound
from webhooks.serializers import WebhookList, WebhookObject, WebhookRequest

_GIVEN = {"url": "https://shop.example/hooks/qr", "events": ["payment.succeeded", "payment.failed"]}
WEBHOOK = _GIVEN | {
    "webhook_id": "wh_0oDFPev2meeI9Zar81ilSZQbdAw",
    "status": "active",
    "created_at": "2026-11-21T03:04:05.123Z",
}
_BY_ID = {"webhook_id": "$response.body#/webhook_id"}

create = Operation(
    name="create_webhook",
    tag=Tag.WEBHOOKS,
    summary="Configure a webhook",
    description="The URL is asked once, by a signed `webhook.ping`, before it is accepted; any HTTP answer "
    "will do. The secret is never part of the object.",
    body=Shown(WebhookRequest, _GIVEN),
    answer=Shown(WebhookObject, WEBHOOK),
    links=(Link("get_webhook", _BY_ID), Link("delete_webhook", _BY_ID)),
)
list_ = Operation(
    name="list_webhooks",
    tag=Tag.WEBHOOKS,
    summary="List webhooks",
    description="Newest first.",
    query=PageQuery,
    answer=Shown(WebhookList, {"webhooks": [WEBHOOK], "total": 1, "limit": 20, "offset": 0}),
)
retrieve = Operation(
    name="get_webhook",
    tag=Tag.WEBHOOKS,
    summary="Retrieve a webhook",
    description="A webhook that failed for days, or answered 410, is `disabled`.",
    answer=Shown(WebhookObject, WEBHOOK),
    refusals=(WebhookNotFound,),
)
destroy = Operation(
    name="delete_webhook",
    tag=Tag.WEBHOOKS,
    summary="Delete a webhook",
    description="Nothing more is sent to it.",
    refusals=(WebhookNotFound,),
)
