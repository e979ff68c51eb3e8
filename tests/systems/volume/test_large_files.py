"""A day of a busy bank: many lines in little memory, by few statements. It prints how long they took."""

import resource
import sys
import time
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection, reset_queries
from django.test.utils import CaptureQueriesContext

from core import clock, ids
from core.clock import BANGKOK
from reconciliation.models import BankTransaction
from reconciliation.statements import importing, statement_file
from tests.context import acting_as
from tests.examples import examples
from tests.reconciliation.statements.statement_files import (
    bot_file,
    detail,
    header,
    import_file,
    open_shop_with_biller,
    trailer,
)

MANY = max(examples(30_000), 10_000)
NIGHT = datetime(2026, 11, 20, 17, 0, tzinfo=UTC)
# In kilobytes. An importer that kept 10,000 lines would grow by 9,700, one that keeps none by 2,300. Ours
# keeps 100 bytes of each line: how often it came before. `MAX_LINES` bounds it; the preview keeps none.
GROWTH = 4 * 1024 + MANY // 10
pytestmark = [pytest.mark.django_db(transaction=True)]


def detail_of(number: int) -> bytes:
    at = (NIGHT + timedelta(seconds=number // 2)).astimezone(BANGKOK)
    return detail(date=f"{at:%d%m%Y}", time=f"{at:%H%M%S}", ref1=f"REF{number:017d}", name=f"สมชาย {number}")


def write(path: Path, count: int) -> Path:
    with path.open("wb") as file:
        for line in lines(count):
            file.write(line + b"\r\n")
    return path


def lines(count: int) -> Iterator[bytes]:
    yield header()
    for number in range(count):
        yield detail_of(number)
    yield trailer(credit=150_000 * count, credits=count)


def report_money(count: int) -> None:
    """Create bank transactions for all lines, as callbacks do."""
    now = clock.now()
    for start in range(0, count, 2_000):
        BankTransaction.objects.bulk_create(
            BankTransaction(
                id=ids.new("btx_", now),
                bank="sandbox",
                bank_reference=f"T{number}",
                kind="credit",
                biller_id="099400016550100",
                reference1=f"REF{number:017d}",
                amount=150_000,
                paid_at=NIGHT + timedelta(seconds=number // 2, milliseconds=number % 1000),
                received_at=now,
                match_result="unmatched",
            )
            for number in range(start, min(start + 2_000, count))
        )


def imported(path: Path) -> tuple[dict[str, int], float, int]:
    """Return the outcomes of the lines, the seconds, and the growth of the process in kilobytes."""
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with path.open("rb") as stream:
        file = statement_file.open_file(stream, path.name)
        with acting_as("staff:malee"):
            statement = importing.begin(file, bank="sandbox", now=clock.now())
        counts = importing.run(file, statement, clock=clock.now)
    assert not statement.problems
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return dict(counts), time.monotonic() - started, grown


@pytest.mark.slow
def test_preview_of_many_lines_takes_constant_memory(tmp_path: Path) -> None:
    """In bytes that Python allocates. It was 857,000 when it counted equal lines."""
    path = write(tmp_path / "day.txt", MANY)
    with path.open("rb") as stream:
        file = statement_file.open_file(stream, path.name)
        tracemalloc.start()
        try:
            assert file.read_contents().line_count == MANY
            assert tracemalloc.get_traced_memory()[1] < 500_000
        finally:
            tracemalloc.stop()


@pytest.mark.slow
def test_import_of_many_lines_takes_little_memory(tmp_path: Path) -> None:
    open_shop_with_biller("Busy")
    import_file(bot_file(*map(detail_of, range(-500, 0))))
    path = write(tmp_path / "day.txt", MANY)
    for expected in ("new", "known"):
        counts, seconds, grown = imported(path)
        sys.stdout.write(f"{expected}: {seconds:.1f} s, {grown} kB more\n")
        assert counts == {expected: MANY}
        assert grown < GROWTH


@pytest.mark.slow
def test_many_lines_are_deduplicated_with_reported_transactions(tmp_path: Path) -> None:
    open_shop_with_biller("Busy")
    report_money(MANY)
    counts, seconds, grown = imported(write(tmp_path / "day.txt", MANY))
    sys.stdout.write(f"attached: {seconds:.1f} s, {grown} kB more\n")
    assert counts == {"attached": MANY}
    assert grown < GROWTH


@pytest.mark.slow
def test_thousand_lines_take_few_queries() -> None:
    open_shop_with_biller("Busy")
    import_file(bot_file(detail_of(2_000)))
    reset_queries()
    with CaptureQueriesContext(connection) as asked:
        import_file(bot_file(*map(detail_of, range(1_000))))
    # Two batches, and the record of the import.
    assert len(asked) <= 2 * 27 + 5
