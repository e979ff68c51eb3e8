"""What merchants see of a webhook, as plain data."""

from datetime import datetime
from typing import Any

import orjson

from core.clock import iso
from webhooks.models import Endpoint


def webhook_object(endpoint: Endpoint) -> dict[str, Any]:
    """The webhook object. It never holds the secret."""
    return {
        "webhook_id": endpoint.id,
        "url": endpoint.url,
        "events": endpoint.events,
        "status": endpoint.status,
        "created_at": iso(endpoint.created_at),
    }


def message(*, type: str, event_id: str, data: dict[str, Any], at: datetime) -> bytes:
    """The body of a notification, made once: every attempt sends and signs these bytes."""
    return orjson.dumps({"event": type, "event_id": event_id, "data": data, "timestamp": iso(at)})
