"""Follow the events of a merchant: at most one request a second, and fewer while the service is down."""

import time
from collections.abc import Iterator

from thaiqr.cli.session import Session
from thaiqr.client import ThaiQR
from thaiqr.errors import NetworkError, ServerError
from thaiqr.models import Event

PAUSE = 1.0
LONGEST_PAUSE = 15.0


def newest_sequence(client: ThaiQR) -> int:
    """The number of the newest event, after which a reader begins; 0 without events."""
    # The feed has no gaps, so its total is the newest number.
    return client.events.follow(page_size=1).first_page().total or 0


def follow(session: Session, after: int) -> Iterator[Event]:
    """All events after a number, as they happen, for ever."""
    pause = PAUSE
    while True:
        try:
            for event in session.client.events.follow(after_sequence=after):
                if event.sequence is None:
                    break
                yield event
                after = event.sequence
            pause = PAUSE
        except (NetworkError, ServerError) as error:
            pause = min(pause * 2, LONGEST_PAUSE)
            session.output.note(f"{error}. Trying again in {pause:.0f} s.")
        time.sleep(pause)
