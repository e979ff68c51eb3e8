"""One commit of many rows, in tables that grow meanwhile by more than the planner knows of."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from core import rows


@contextmanager
def by_index() -> Iterator[None]:
    """A transaction in which rows are found by index. A plan that was made while a table was small would read
    all of it, again and again: a hundred thousand lines took twenty times as long in a new database."""
    with transaction.atomic():
        rows.run("SET LOCAL enable_seqscan = off", ())
        yield
