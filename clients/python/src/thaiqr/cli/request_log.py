"""`thaiqr requests tail`: the log of your own requests."""

import time
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Annotated, Any

import typer
from rich.text import Text

from thaiqr.cli.output import local
from thaiqr.cli.session import AsJson, Limit, Profile, Session, opened
from thaiqr.models import LoggedRequest

PAUSE = 2.0
"""Seconds. The service writes its log once a second."""
OVERLAP = timedelta(seconds=30)
MOST = 500
"""Requests that are read at once, at most."""
Status = Annotated[str | None, typer.Option(help="2xx, 4xx or 5xx.")]


def tail(
    limit: Limit = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new ones. Ctrl-C ends.")] = False,
    status: Status = None,
    method: Annotated[str | None, typer.Option(help="GET, POST, PATCH or DELETE.")] = None,
    payment: Annotated[str | None, typer.Option(help="Only about this payment.")] = None,
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """Show the newest requests, the newest last."""
    with opened(profile, json=json) as session:
        filters: Any = {"status": status, "method": method, "payment_id": payment}
        started, seen = datetime.now(UTC), set[str]()
        _print(session, _newest(session, limit, filters), seen)
        while follow:
            time.sleep(PAUSE)
            # A process writes its requests late by a second, so the log is read with an overlap.
            since = max(started, datetime.now(UTC) - OVERLAP)
            _print(session, _newest(session, MOST, filters | {"start_date": since}), seen)


def _newest(session: Session, limit: int, filters: dict[str, Any]) -> list[LoggedRequest]:
    """The newest, the oldest first. Reads of the log itself are left out."""
    listed = islice(session.client.requests.list(**filters), MOST)
    return [each for each in listed if each.route != "/v1/requests"][:limit][::-1]


def _print(session: Session, found: list[LoggedRequest], seen: set[str]) -> None:
    for each in found:
        if each.id not in seen:
            _print_line(session, each)
    seen |= {each.id for each in found}


def _print_line(session: Session, each: LoggedRequest) -> None:
    if session.output.json:
        session.output.data(each.raw)
        return
    colour = "green" if each.status < 400 else "yellow" if each.status < 500 else "red"
    line = Text.assemble(
        (local(each.created_at), "dim"),
        "  ",
        (str(each.status), colour),
        f" {each.duration_ms:>5} ms  {each.method:<6} {each.path}",
        (f"  {each.error_code}" if each.error_code else "", colour),
        (f"  {each.request_id}", "dim"),
    )
    session.output.console.print(line, soft_wrap=True)
