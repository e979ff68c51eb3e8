"""Access lines are written some at a time, everything else at once, and none is lost at the end."""

import io
import logging
from collections.abc import Iterator

import pytest

from core.logs import BufferedAccessHandler
from tests.stack import wait_until


@pytest.fixture
def written() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def handler(written: io.StringIO) -> Iterator[BufferedAccessHandler]:
    handler = BufferedAccessHandler(written)
    yield handler
    handler.close()


def say(handler: BufferedAccessHandler, name: str, text: str) -> None:
    handler.handle(logging.LogRecord(name, logging.INFO, __file__, 1, text, None, None))


def test_buffered_access_lines_are_written_in_order(
    handler: BufferedAccessHandler, written: io.StringIO
) -> None:
    for number in range(3):
        say(handler, "access", str(number))
    wait_until(lambda: written.getvalue() == "0\n1\n2\n", 60)
    say(handler, "access", "3")
    wait_until(lambda: written.getvalue().endswith("3\n"), 60)


def test_other_log_lines_are_written_at_once(handler: BufferedAccessHandler, written: io.StringIO) -> None:
    say(handler, "api", "broken")
    assert written.getvalue() == "broken\n"


def test_buffered_lines_are_written_at_exit(handler: BufferedAccessHandler, written: io.StringIO) -> None:
    say(handler, "access", "last")
    handler.flush()
    assert written.getvalue() == "last\n"
