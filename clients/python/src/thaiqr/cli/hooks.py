"""`thaiqr webhooks`: make, show and change endpoints; their secrets; replays."""

from typing import Annotated, Any

import typer

from thaiqr.cli.commands import EVENTS, Events
from thaiqr.cli.session import AsJson, Profile, Session, opened
from thaiqr.models import Webhook

FIELDS = ("webhook_id", "url", "status", "disabled_reason", "events", "verification", "created_at")
HEALTH = ("state", "consecutive_failures", "failing_since", "paused_until", "last_error")
HookId = Annotated[str, typer.Argument(metavar="WEBHOOK_ID")]


def get(webhook: HookId, json: AsJson = False, profile: Profile = None) -> None:
    """Show an endpoint and how its deliveries go."""
    with opened(profile, json=json) as session:
        _show(session, session.client.webhooks.get(webhook))


def create(
    url: Annotated[str, typer.Argument(help="An https URL that answers a POST.")],
    event: Events = None,
    secret: Annotated[str | None, typer.Option(help="Your own secret; otherwise one is made.")] = None,
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """Register an endpoint. `thaiqr webhooks secret` shows its secret."""
    with opened(profile, json=json) as session:
        types: Any = event or EVENTS
        _show(session, session.client.webhooks.create(url=url, events=types, secret=secret))


def change(
    webhook: HookId,
    url: Annotated[str | None, typer.Option(help="Another URL.")] = None,
    event: Annotated[list[str] | None, typer.Option("--event", "-e", help="All event types, anew.")] = None,
    enable: Annotated[bool | None, typer.Option("--enable/--disable", help="Send to it, or not.")] = None,
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """Change an endpoint: its URL, its events, or whether it is enabled."""
    with opened(profile, json=json) as session:
        status: Any = None if enable is None else ("active" if enable else "disabled")
        types: Any = event or None
        _show(session, session.client.webhooks.change(webhook, url=url, events=types, status=status))


def secret(webhook: HookId, json: AsJson = False, profile: Profile = None) -> None:
    """Print the secret of an endpoint, which verifies its messages."""
    with opened(profile, json=json) as session:
        found = session.client.webhooks.get_secret(webhook)
        session.output.data(found.raw) if session.output.json else session.output.say(found.secret)


def replay(
    webhook: HookId,
    since: Annotated[str, typer.Option(help="From this date or time on.")],
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """Send all events again that an endpoint did not receive."""
    with opened(profile, json=json) as session:
        found = session.client.webhooks.replay(webhook, since=since)
        more = "; there are more: run it again" if found.has_more else ""
        session.output.data(found.raw) if session.output.json else session.output.say(
            f"{found.replayed} events{more}."
        )


def _show(session: Session, webhook: Webhook) -> None:
    session.output.show(webhook, FIELDS)
    if not session.output.json:
        session.output.show(webhook.health, HEALTH)
