"""`thaiqr events tail` and `resend`."""

from datetime import timedelta
from typing import Annotated

import typer

from thaiqr.cli import feed
from thaiqr.cli.exits import Exit
from thaiqr.cli.output import columns
from thaiqr.cli.session import AsJson, Profile, opened

# A delivery is made in the commit of its event, and has its time. Later ones are repeats.
MOMENT = timedelta(seconds=1)


def tail(
    event: Annotated[
        list[str] | None, typer.Option("--event", "-e", help="Only this type; may be repeated.")
    ] = None,
    after: Annotated[
        int | None, typer.Option(metavar="SEQUENCE", help="Also show the events after this.")
    ] = None,
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """Show events as they happen. Ctrl-C ends."""
    with opened(profile, json=json) as session:
        session.output.note("Watching events. Ctrl-C ends.")
        start = feed.newest_sequence(session.client) if after is None else after
        for each in feed.follow(session, start):
            if not event or each.event in event:
                told = each.raw["data"].get("amount_display", "")
                session.output.event(each, f"{each.sequence}  {each.event_id}  {told}".rstrip())


def resend(
    event: Annotated[str, typer.Argument(metavar="EVENT_ID")],
    webhook: Annotated[str | None, typer.Option(help="Only to this one. By default to all.")] = None,
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """Send an event again to the webhooks that it was for."""
    with opened(profile, json=json) as session:
        hooks, read = session.client.webhooks, session.client.events.get(event)
        at, kind = read.timestamp, {"event": read.event}
        sent = {
            delivery.webhook_id: delivery.delivery_id
            for hook in ([webhook] if webhook else [each.webhook_id for each in hooks.list()])
            for delivery in hooks.deliveries(hook, start_date=at, end_date=at + MOMENT, **kind)  # type: ignore[arg-type]
            if delivery.event_id == event
        }
        if not sent:
            session.output.fail(
                "No webhook was sent this event. `thaiqr webhooks replay` sends what one missed."
            )
            raise typer.Exit(Exit.REFUSED)
        made = [hooks.redeliver(hook, delivery) for hook, delivery in sent.items()]
        session.output.table(made, columns("delivery_id event state created_at"))
