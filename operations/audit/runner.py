"""Run the rules of the audit over one snapshot of the database, and report every difference."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction

from core.clock import iso
from operations.audit import rules
from operations.audit.rules import AuditRule
from transfers.models import Transfer

RULES = rules.read(*rules.FILES)
(OWED_BY_ACQUIRERS,) = (rule for rule in RULES if rule.name.startswith("what acquirers owe"))
# Not differences: what somebody should do although the books are right.
WARNINGS = rules.read("warnings")
# The operator should ask the bank about a transfer that has no final status after this time.
OVERDUE_AFTER = timedelta(days=1)
# No time limits, and plans for reading all rows. The server ends a statement whose client is gone.
SESSION_SETTINGS = {
    "client_connection_check_interval": "10s",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "work_mem": "64MB",
    "cursor_tuple_fraction": "1",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """id: of the object that differs, with the part that differs if it has several."""

    rule: str
    id: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.id}: expected {self.expected}, found {self.found}"


@contextmanager
def snapshot(*, writes: bool = False) -> Iterator[None]:
    """A snapshot of the database, read-only unless it `writes` rows. Reading waits for no lock."""
    mode = "READ WRITE" if writes else "READ ONLY"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, {mode}")
        for name, value in SESSION_SETTINGS.items():
            cursor.execute(f"SET LOCAL {name} = '{value}'")
        yield


def differences(*, on_progress: Callable[[int], None] = lambda rules: None) -> Iterator[Difference]:
    """Read the differences in chunks, in the caller's transaction. Calls `on_progress` after each rule."""
    for rule in RULES:
        yield from differences_of(rule)
        on_progress(1)


def warnings(now: datetime) -> Iterator[str]:
    """What somebody should do although the books are right. No line has names or accounts."""
    for transfer in Transfer.objects.open_since(now - OVERDUE_AFTER).order_by("created_at"):
        yield f"Ask the bank: {transfer.id} is {transfer.state} since {iso(transfer.created_at)}"
    for rule in WARNINGS:
        for each in differences_of(rule):
            yield f"Import the whole statement of the day, or ask the bank: {each.id} is {each.found}"


def differences_of(rule: AuditRule) -> Iterator[Difference]:
    """Read the differences of one rule in chunks, in the caller's transaction."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(rule.sql)
        for row in cursor:
            yield Difference(rule.name, *row)
