"""Access lines are written some at a time, everything else at once, and none is lost at the end."""

import io
import logging
from collections.abc import Iterator

import pytest

from core.logs import Gathering
from tests.stack import wait_until


@pytest.fixture
def written() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def handler(written: io.StringIO) -> Iterator[Gathering]:
    handler = Gathering(written)
    yield handler
    handler.close()


def say(handler: Gathering, name: str, text: str) -> None:
    handler.handle(logging.LogRecord(name, logging.INFO, __file__, 1, text, None, None))


def test_access_lines_are_written_soon_and_in_order(handler: Gathering, written: io.StringIO) -> None:
    for number in range(3):
        say(handler, "access", str(number))
    wait_until(lambda: written.getvalue() == "0\n1\n2\n", 60)
    say(handler, "access", "3")
    wait_until(lambda: written.getvalue().endswith("3\n"), 60)


def test_everything_else_is_written_at_once(handler: Gathering, written: io.StringIO) -> None:
    say(handler, "api", "broken")
    assert written.getvalue() == "broken\n"


def test_what_is_gathered_is_written_at_the_end(handler: Gathering, written: io.StringIO) -> None:
    say(handler, "access", "last")
    handler.flush()
    assert written.getvalue() == "last\n"
