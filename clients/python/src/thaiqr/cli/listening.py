"""`thaiqr listen`: events of a test merchant to a machine without a public address."""

import base64
import hashlib
import hmac
import json as json_format
import re
import time
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

import httpx
import typer

from thaiqr import webhooks
from thaiqr._version import __version__
from thaiqr.cli import feed
from thaiqr.cli.session import AsJson, Profile, Session, opened
from thaiqr.models import Event
from thaiqr.settings import connected

SECONDS = 15.0
"""As long as the service waits for an answer."""
LOCAL = re.compile(r"(?::?([0-9]+))?(/.*)?", re.ASCII)
"""A port, a path, or both."""


@dataclass(frozen=True)
class Forwarding:
    """What the endpoint did with an event. status: HTTP, or None if it could not be reached."""

    status: int | None
    milliseconds: int
    error: str = ""

    @property
    def shown(self) -> str:
        """For people."""
        return f"-> {self.status or self.error} ({self.milliseconds} ms)"


def listen(
    path: Annotated[
        str | None, typer.Argument(metavar="[TO]", help="/hook, 3000/hook, localhost:3000/hook or a URL.")
    ] = None,
    forward_to: Annotated[str | None, typer.Option(metavar="TO", help="The same as an option.")] = None,
    port: Annotated[int, typer.Option(envvar="PORT", help="Of this machine, for a path alone.")] = 3000,
    event: Annotated[
        list[str] | None, typer.Option("--event", "-e", help="Only this type; may be repeated.")
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(
            envvar="THAIQR_WEBHOOK_SECRET", help="Sign with this secret. By default one is printed."
        ),
    ] = None,
    after: Annotated[
        int | None, typer.Option(metavar="SEQUENCE", help="Also send the events after this.")
    ] = None,
    json: AsJson = False,
    profile: Profile = None,
) -> None:
    """Post the events of a test merchant to a local URL. They are signed as webhooks are. Ctrl-C ends."""
    with opened(profile, json=json) as session:
        session.require_test_key()
        url = url_of(path, forward_to, port)
        signing = secret or secret_of(session.login.api_key)
        session.output.note(f"Events go to {url}. They are signed with this secret, Ctrl-C ends:")
        session.output.note(signing)
        start = feed.newest_sequence(session.client) if after is None else after
        with connected(lambda: httpx.Client(timeout=SECONDS)) as http:
            for each in feed.follow(session, start):
                if not event or each.event in event:
                    _show(session, each, forward(http, url, each, signing))


def secret_of(api_key: str) -> str:
    """A secret of this key, the same each time, from which nobody can compute the key."""
    digest = hmac.digest(api_key.encode(), b"thaiqr listen", hashlib.sha256)
    return webhooks.PREFIX + base64.b64encode(digest).decode()


def forward(http: httpx.Client, url: str, event: Event, secret: str) -> Forwarding:
    """Post an event with the body and the headers that the service sends."""
    body = body_of(event)
    headers = webhooks.signed_headers(body, message_id=event.event_id, secret=secret)
    headers["User-Agent"] = f"thaiqr-listen/{__version__}"
    started = time.monotonic()
    try:
        status, error = http.post(url, content=body, headers=headers).status_code, ""
    except httpx.RequestError as failure:
        status, error = None, str(failure) or type(failure).__name__
    return Forwarding(status, round((time.monotonic() - started) * 1000), error)


def body_of(event: Event) -> bytes:
    """The body of the webhook: the event without its number in the feed."""
    message = {name: value for name, value in event.raw.items() if name != "sequence"}
    return json_format.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def _show(session: Session, event: Event, done: Forwarding) -> None:
    if not session.output.json:
        session.output.event(event, f"{event.sequence}  {done.shown}")
        return
    session.output.data(
        {
            "event": event.event,
            "event_id": event.event_id,
            "sequence": event.sequence,
            "status": done.status,
            "error": done.error or None,
            "duration_ms": done.milliseconds,
        }
    )


def url_of(path: str | None, forward_to: str | None, port: int) -> str:
    """Where events go. Raises ValueError unless exactly one is given, and names a path, a host or a URL."""
    given = path or forward_to or ""
    if not given or (path and forward_to):
        raise ValueError("Say where events go, once: `thaiqr listen /hook`, or --forward-to URL.")
    local = LOCAL.fullmatch(given)
    url = f"http://localhost:{local[1] or port}{local[2] or ''}" if local else given
    url = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise ValueError(f"TO must be a path or a URL such as http://localhost:3000/hook, not {given!r}.")
    return url
