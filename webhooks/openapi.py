"""The operations on webhooks, as the OpenAPI document tells them."""

from core.openapi import Link, Operation, Shown, Tag
from core.paging import PageQuery
from core.scopes import Scope
from webhooks.errors import TooManyWebhooks, WebhookNotFound
from webhooks.serializers import (
    SecretRequest,
    WebhookChangeRequest,
    WebhookList,
    WebhookObject,
    WebhookRequest,
    WebhookSecret,
)

_GIVEN = {"url": "https://shop.example/hooks/qr", "events": ["payment.succeeded", "payment.failed"]}
_HEALTHY = {
    "state": "healthy",
    "consecutive_failures": 0,
    "failing_since": None,
    "paused_until": None,
    "last_error": None,
}
_PAUSED = {
    "state": "paused",
    "consecutive_failures": 12,
    "failing_since": "2026-11-21T03:04:05.123Z",
    "paused_until": "2026-11-21T03:09:41.870Z",
    "last_error": "timeout",
}
WEBHOOK = _GIVEN | {
    "webhook_id": "wh_0oDFPev2meeI9Zar81ilSZQbdAw",
    "status": "active",
    "disabled_reason": None,
    "verification": "verified",
    "health": _HEALTHY,
    "created_at": "2026-11-21T03:04:05.123Z",
}
_BY_ID = {"webhook_id": "$response.body#/webhook_id"}

create = Operation(
    name="create_webhook",
    tag=Tag.WEBHOOKS,
    scope=Scope.WEBHOOKS_WRITE,
    summary="Configure a webhook",
    description="The URL is asked once, by a signed `webhook.ping`, before it is accepted; any HTTP answer "
    "will do. The secret is never part of the object.",
    body=Shown(WebhookRequest, _GIVEN),
    answer=Shown(WebhookObject, WEBHOOK),
    refusals=(TooManyWebhooks,),
    links=(
        Link("get_webhook", _BY_ID),
        Link("get_webhook_secret", _BY_ID),
        Link("rotate_webhook_secret", _BY_ID),
        Link("delete_webhook", _BY_ID),
    ),
)
list_ = Operation(
    name="list_webhooks",
    tag=Tag.WEBHOOKS,
    scope=Scope.PAYMENTS_READ,
    summary="List webhooks",
    description="Newest first.",
    query=PageQuery,
    answer=Shown(
        WebhookList,
        {"webhooks": [WEBHOOK | {"health": _PAUSED}], "total": 1, "limit": 20, "offset": 0},
    ),
)
retrieve = Operation(
    name="get_webhook",
    tag=Tag.WEBHOOKS,
    scope=Scope.PAYMENTS_READ,
    summary="Retrieve a webhook",
    description="A webhook that fails many times in a row is paused for a while: `health` says until when "
    "and why. One that failed for days, or answered 410, is `disabled`: `disabled_reason` says which.",
    answer=Shown(WebhookObject, WEBHOOK),
    refusals=(WebhookNotFound,),
)
change = Operation(
    name="change_webhook",
    tag=Tag.WEBHOOKS,
    scope=Scope.WEBHOOKS_WRITE,
    summary="Change a webhook",
    description="What is not named stays. A new URL is asked as at creation. While it is `disabled` its "
    "events are held; enabling it again sends nothing by itself: ask for a replay.",
    body=Shown(WebhookChangeRequest, {"status": "disabled"}),
    answer=Shown(WebhookObject, WEBHOOK | {"status": "disabled", "disabled_reason": "merchant"}),
    refusals=(WebhookNotFound,),
)
destroy = Operation(
    name="delete_webhook",
    tag=Tag.WEBHOOKS,
    scope=Scope.WEBHOOKS_WRITE,
    summary="Delete a webhook",
    description="Nothing more is sent to it.",
    refusals=(WebhookNotFound,),
)
secret = Operation(
    name="get_webhook_secret",
    tag=Tag.WEBHOOKS,
    scope=Scope.WEBHOOKS_WRITE,
    summary="Reveal the secret of a webhook",
    description="The one place that shows it.",
    answer=Shown(WebhookSecret, {"webhook_id": WEBHOOK["webhook_id"], "secret": "whsec_..."}),
    refusals=(WebhookNotFound,),
)
renew_secret = Operation(
    name="rotate_webhook_secret",
    tag=Tag.WEBHOOKS,
    scope=Scope.WEBHOOKS_WRITE,
    summary="Renew the secret of a webhook",
    description="For 24 hours messages carry two signatures, one by the secret before. Given the secret that "
    "signs already, nothing changes. The answer does not show the secret.",
    body=Shown(SecretRequest, {}),
    answer=Shown(WebhookObject, WEBHOOK),
    refusals=(WebhookNotFound,),
    links=(Link("get_webhook_secret", _BY_ID),),
)
