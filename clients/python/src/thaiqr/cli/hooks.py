"""`thaiqr webhooks`: endpoints, their secrets and deliveries."""

from typing import Annotated, Any, get_args

import typer

from thaiqr.choices import EventType
from thaiqr.cli.qr import Limit
from thaiqr.cli.session import AsJson, Profile, Session, opened
from thaiqr.models import Webhook

app = typer.Typer(no_args_is_help=True, help="Manage the endpoints that receive events.")
EVENTS: tuple[str, ...] = get_args(EventType)
COLUMNS = {"webhook_id": "ID", "status": "Status", "url": "URL"}
FIELDS = ("webhook_id", "url", "status", "disabled_reason", "events", "verification", "created_at")
HEALTH = ("state", "consecutive_failures", "failing_since", "paused_until", "last_error")
DELIVERY_FIELDS = (
    "delivery_id",
    "event",
    "event_id",
    "state",
    "created_at",
    "next_attempt_at",
    "finished_at",
)
DELIVERY_COLUMNS = {
    "delivery_id": "ID",
    "event": "Event",
    "state": "State",
    "created_at": "Created",
    "next_attempt_at": "Next try",
}
HookId = Annotated[str, typer.Argument(metavar="WEBHOOK_ID")]
Events = Annotated[
    list[str] | None, typer.Option("--event", "-e", help="An event type; may be repeated. All by default.")
]


@app.command("list")
def list_webhooks(json: AsJson = False, profile: Profile = None) -> None:
    """List the endpoints."""
    with opened(profile, json=json) as session:
        session.output.table(session.client.webhooks.list(), COLUMNS)


@app.command()
def get(webhook: HookId, json: AsJson = False, profile: Profile = None) -> None:
    """Show an endpoint and how its deliveries go."""
    with opened(profile, json=json) as session:
        _show(session, session.client.webhooks.get(webhook))


@app.command()
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


@app.command()
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


@app.command()
def delete(webhook: HookId, json: AsJson = False, profile: Profile = None) -> None:
    """Delete an endpoint."""
    with opened(profile, json=json) as session:
        session.client.webhooks.delete(webhook)
        _done(session, webhook, "Deleted")


@app.command()
def test(webhook: HookId, json: AsJson = False, profile: Profile = None) -> None:
    """Send a test message to an endpoint."""
    with opened(profile, json=json) as session:
        session.output.show(session.client.webhooks.test(webhook), DELIVERY_FIELDS)


@app.command()
def secret(webhook: HookId, json: AsJson = False, profile: Profile = None) -> None:
    """Print the secret of an endpoint, which verifies its messages."""
    with opened(profile, json=json) as session:
        found = session.client.webhooks.get_secret(webhook)
        session.output.data(found.raw) if json else session.output.say(found.secret)


@app.command()
def rotate(
    webhook: HookId,
    secret: Annotated[str | None, typer.Option(help="Your own secret; otherwise one is made.")] = None,
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """Renew the secret of an endpoint. The old one also signs until its 24 hours are over."""
    with opened(profile, json=json) as session:
        _show(session, session.client.webhooks.rotate_secret(webhook, secret=secret))


@app.command()
def deliveries(
    webhook: HookId,
    state: Annotated[str | None, typer.Option(help="pending, succeeded, failed or held.")] = None,
    limit: Limit = 20,
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """List what was sent to an endpoint."""
    with opened(profile, json=json) as session:
        filters: Any = {"state": state}
        found = session.client.webhooks.deliveries(webhook, **filters, page_size=min(limit, 100))
        session.output.listing(found, DELIVERY_COLUMNS, limit)


@app.command()
def redeliver(webhook: HookId, delivery: str, json: AsJson = False, profile: Profile = None) -> None:
    """Send one event again."""
    with opened(profile, json=json) as session:
        session.output.show(session.client.webhooks.redeliver(webhook, delivery), DELIVERY_FIELDS)


@app.command()
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
        session.output.data(found.raw) if json else session.output.say(f"{found.replayed} events{more}.")


def _show(session: Session, webhook: Webhook) -> None:
    session.output.show(webhook, FIELDS)
    if not session.output.json:
        session.output.show(webhook.health, HEALTH)


def _done(session: Session, webhook_id: str, done: str) -> None:
    if session.output.json:
        session.output.data({"webhook_id": webhook_id, "deleted": True})
    else:
        session.output.say(f"{done} {webhook_id}.")
