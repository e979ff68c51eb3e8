"""Create and change destinations: LINE chats and email addresses that get messages about events.

The other functions about endpoints, such as `endpoints.delete` and `redelivery.test`, serve them too.
"""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import EmailValidator
from django.db import transaction
from django.db.models import Max, Q

from core import ids, vault
from core.errors import ApiError
from core.http import received
from merchants.models import Merchant
from webhooks import endpoints, errors, models
from webhooks.delivery.queue import MESSAGE_INTERVAL_SECONDS

TYPES = (models.EndpointType.LINE, models.EndpointType.EMAIL)
_EMAIL = EmailValidator(allowlist=[])
LINE_CHAT = re.compile(r"[UCR][0-9a-f]{32}", re.ASCII)
LINE_TOKEN = re.compile(r"[0-9A-Za-z+/=._-]{20,500}", re.ASCII)


@transaction.atomic
def create(
    *,
    merchant: Merchant | None,
    type: str,
    to: str,
    events: Iterable[str],
    now: datetime,
    token: str = "",
    language: str = models.Language.TH,
    quiet_hours: str = "",
) -> models.Endpoint:
    """Create a destination; without a merchant, of the operator.

    Raises EmailNotConfigured, TooManyDestinations, InvalidTo, InvalidToken, InvalidQuietHours.
    """
    if type == models.EndpointType.EMAIL and not (settings.EMAIL_HOST and settings.EMAIL_FROM):
        raise errors.EmailNotConfigured()
    if merchant is not None:  # so that each of several creations counts the others
        Merchant.objects.select_for_update(no_key=True).get(pk=merchant.id)
    limit = settings.WEBHOOKS_PER_MERCHANT
    if models.Endpoint.objects.of(merchant).destinations().count() >= limit:
        raise errors.TooManyDestinations(limit=limit)
    destination = models.Endpoint(
        id=ids.new("dst_", now), merchant=merchant, type=type, created_at=now, updated_at=now
    )
    destination.events = list(dict.fromkeys(events))
    _set(destination, to=to, token=token, language=language, quiet_hours=quiet_hours)
    destination.save(force_insert=True)
    # Deleting a destination and making it again gives no message more in a minute. Nobody knows any more to
    # whom a deleted one wrote.
    lately = now - timedelta(seconds=MESSAGE_INTERVAL_SECONDS)
    same = Q(endpoint__recipient=destination.recipient) | Q(endpoint__deleted_at__gt=lately)
    last = models.EndpointHealth.objects.filter(same, endpoint__merchant=merchant).aggregate(
        at=Max("attempted_at")
    )
    models.EndpointHealth.objects.create(endpoint=destination, attempted_at=last["at"])
    models.EndpointAction.record(destination.id, models.EndpointActionType.CREATED, now=now)
    return destination


def find(merchant: Merchant, destination_id: str) -> models.Endpoint:
    """Find a destination of the merchant with its health. Raises DestinationNotFound."""
    known = models.Endpoint.objects.of(merchant).destinations().select_related("health")
    return ids.find(destination_id, "dst_", known, errors.DestinationNotFound)


@transaction.atomic
def change(
    destination: models.Endpoint, *, now: datetime, status: str | None = None, **fields: Any
) -> models.Endpoint:
    """Change these fields, as `create` takes them. Raises DestinationNotFound, and the errors of fields."""
    destination = endpoints.lock(destination)
    chat, events = destination.recipient, fields.pop("events", destination.events)
    endpoints.set_events(destination, events, now)
    if fields:
        _set(destination, **fields)
        models.EndpointAction.record(destination.id, models.EndpointActionType.CHANGED, now=now)
        if destination.recipient != chat or "token" in fields:
            endpoints.reset_health(destination, now, verified_at=None)
    endpoints.change_status(destination, status, now)
    return destination


def _set(destination: models.Endpoint, **fields: Any) -> None:
    is_line = destination.type == models.EndpointType.LINE
    if "to" in fields:
        destination.recipient = to = fields["to"].strip()
        _check(LINE_CHAT.fullmatch(to) if is_line else _is_email(to), errors.InvalidTo, to)
    if "token" in fields:
        token = fields["token"]
        _check(LINE_TOKEN.fullmatch(token) if is_line else token == "", errors.InvalidToken, token)
        destination.secret_sealed = vault.seal(token, context=destination.id) if is_line else ""
    if "quiet_hours" in fields:
        destination.quiet_hours = hours = fields["quiet_hours"]
        is_right = re.fullmatch(models.QUIET_HOURS, hours, re.ASCII) and not re.match(models.NO_HOURS, hours)
        _check(hours == "" or is_right, errors.InvalidQuietHours, hours)
    destination.language = fields.get("language", destination.language)


def _is_email(text: str) -> bool:
    """Not at an IP address or localhost, where the mail server would reach the operator's network."""
    try:
        _EMAIL(text)
    except ValidationError:
        return False
    return text.isascii() and not set(text) & set('"[')


def _check(is_right: object, error: type[ApiError], value: str) -> None:
    """The message of the error says the rule."""
    if not is_right:
        param = error.code.removeprefix("invalid_")
        raise error(param=param, received=received.describe(value, is_shown=False))
