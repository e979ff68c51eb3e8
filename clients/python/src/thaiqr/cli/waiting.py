"""Poll until something has its final state: once a second at first, every three seconds later."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from rich.live import Live
from rich.text import Text

from thaiqr.cli.output import Output

T = TypeVar("T")
FIRST_PAUSE, LONGEST_PAUSE, GROWTH = 1.0, 3.0, 1.1
TICK = 0.25


def until(
    read: Callable[[], T],
    is_done: Callable[[T], bool],
    output: Output,
    caption: Callable[[T], str],
    *,
    seconds: float | None = None,
) -> T:
    """Read again and again; return the last value when it is done, or after `seconds`.

    caption: a line about the last value, shown while a person waits.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    pause, value = FIRST_PAUSE, read()
    with _live(output) as live:
        while not is_done(value) and (deadline is None or time.monotonic() < deadline):
            _wait(pause, live, lambda value=value: caption(value))  # type: ignore[misc]
            pause = min(pause * GROWTH, LONGEST_PAUSE)
            value = read()
    return value


def countdown(expires_at: datetime) -> str:
    """`12:03` minutes and seconds until a time."""
    left = max(0, int((expires_at - datetime.now(UTC)).total_seconds()))
    hours, rest = divmod(left, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60:02d}:{rest % 60:02d}"


def _wait(seconds: float, live: Live, caption: Callable[[], str]) -> None:
    """Wait, with the caption kept up to date."""
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        live.update(Text(caption(), style="dim"), refresh=live.console.is_terminal)
        time.sleep(min(TICK, left))


def _live(output: Output) -> Live:
    """A line that changes, on a terminal only, and on standard error: output may be piped."""
    return Live(console=output.errors, transient=True, auto_refresh=False)
