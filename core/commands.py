"""What management commands share: checks, arguments, progress, and output in every encoding."""

import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, OutputWrapper
from django.db import DEFAULT_DB_ALIAS

from core import dates


def read_day(text: str) -> date:
    """The type of an argument that is a date of this century or the next. Raises ArgumentTypeError."""
    try:
        day = dates.day(text)
    except dates.BuddhistYear as refusal:
        raise ArgumentTypeError(str(refusal)) from None
    except ValueError:
        day = date.min
    if not 2000 <= day.year < 2200:
        raise ArgumentTypeError(f"{text!r} is not a date such as 2026-11-21")
    return day


def show_any_character() -> None:
    """Print escapes for characters that the output cannot show: no command may fail after its work."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


class SealingCommand(BaseCommand):
    """Refuse to run if a server would not start, such as with keys that do not open stored data."""

    def get_check_kwargs(self, options: dict[str, Any]) -> Any:
        """Name the database, because Django skips its checks otherwise."""
        return super().get_check_kwargs(options) | {"databases": [DEFAULT_DB_ALIAS]}


WIDTH = 30
CLEAR_LINE = "\r\x1b[K"  # back to the start of the line, and clear it


class ProgressBar:
    """A line on a terminal that shows progress. Writes and counts nothing if the output is no terminal."""

    def __init__(self, output: OutputWrapper, label: str, total: Callable[[], int]) -> None:
        self._output, self._label = output, label
        self._shown = output.isatty()
        self._total = total() if self._shown else 0
        self._done, self._percent = 0, -1

    def advance(self, by: int) -> None:
        self._done += by
        percent = min(100, 100 * self._done // max(1, self._total))
        if self._shown and percent != self._percent:
            self._percent = percent
            bar = f"[{'#' * (WIDTH * percent // 100):<{WIDTH}}] {percent:3} %"
            self._output.write(f"{CLEAR_LINE}{self._label} {bar}", ending="")
            self._output.flush()

    def clear(self) -> None:
        if self._shown:
            self._output.write(CLEAR_LINE, ending="")
