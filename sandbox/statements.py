"""Statement files of the sandbox bank: the credits and reversals of a biller on one day.

Source: the Bank of Thailand's cross-bank bill payment file. It has a header, details and totals in lines of
256 characters in TIS-620, ended by CRLF. Texts are left-aligned, numbers right-aligned with leading zeros,
amounts in satang. Many banks use CP874, which adds characters that are not used here.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from io import StringIO

from core import money
from core.clock import BANGKOK
from core.console import csv_cells
from core.console.csv_cells import escape_cell
from sandbox.models import SandboxEntry, SandboxEntryType

BANK_CODE = "998"  # no bank in Thailand has it
WIDTH, ENCODING = 256, "tis-620"
SERVICE, BRANCH, TELLER, CODE, CHEQUE = "SANDBOX ", "0000", "0000", "TRF", "0000000"
COLUMNS = (
    *("date", "time", "biller_id", "reference1", "reference2"),
    *("reference3", "amount", "type", "payer_name", "payer_bank_code"),
)


@dataclass(frozen=True, slots=True)
class StatementFormat:
    """`write` makes the parts of the file of a biller id, a day and entries."""

    content_type: str
    extension: str
    write: Callable[[str, date, Iterable[SandboxEntry]], Iterator[bytes]]


def write_bot(biller_id: str, day: date, entries: Iterable[SandboxEntry]) -> Iterator[bytes]:
    amounts, counts, number = Counter[str](), Counter[str](), 1
    yield _line(_start("H", number, biller_id) + f"{biller_id:<40}{_day(day)}{SERVICE}")
    for entry in entries:
        number += 1
        amounts[entry.type] += entry.payment.amount
        counts[entry.type] += 1
        yield _line(_start("D", number, biller_id) + _detail(entry))
    totals = "".join(
        f"{amounts[kind]:013d}{counts[kind]:06d}"
        for kind in (SandboxEntryType.REVERSAL, SandboxEntryType.CREDIT)
    )
    yield _line(_start("T", number + 1, biller_id) + totals)


def write_csv(biller_id: str, day: date, entries: Iterable[SandboxEntry]) -> Iterator[bytes]:
    """CSV in UTF-8 with a header row."""
    text = StringIO(newline="")
    writer = csv_cells.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows([escape_cell(cell) for cell in _row(entry)] for entry in entries)
    yield text.getvalue().encode()


FORMATS = {
    "bot": StatementFormat(f"text/plain; charset={ENCODING}", "txt", write_bot),
    "csv": StatementFormat("text/csv; charset=utf-8", "csv", write_csv),
}


def _line(text: str) -> bytes:
    return f"{text:<{WIDTH}}\r\n".encode(ENCODING, "replace")


def _start(kind: str, number: int, biller_id: str) -> str:
    return f"{kind}{number % 1_000_000:06d}{BANK_CODE}{biller_id[-10:]}"


def _day(day: date) -> str:
    return f"{day.day:02d}{day.month:02d}{day.year:04d}"


def _detail(entry: SandboxEntry) -> str:
    payment, at = entry.payment, entry.occurred_at.astimezone(BANGKOK)
    sign = "D" if entry.type == SandboxEntryType.REVERSAL else "C"
    references = (payment.reference1, payment.reference2, payment.reference3)
    return "".join(
        (
            f"{_day(at)}{at:%H%M%S}{payment.payer_name[:50]:<50}",
            *(f"{reference[:20]:<20}" for reference in references),
            f"{BRANCH}{TELLER}{sign}{CODE}{CHEQUE}{payment.amount:013d}{'':<20}",
            f"{payment.biller_id:<15}{'':<32}{payment.payer_bank_code}",
        )
    )


def _row(entry: SandboxEntry) -> tuple[str, ...]:
    payment, at = entry.payment, entry.occurred_at.astimezone(BANGKOK)
    return (
        at.date().isoformat(),
        f"{at:%H:%M:%S}",
        payment.biller_id,
        payment.reference1,
        payment.reference2,
        payment.reference3,
        money.baht(payment.amount),
        "debit" if entry.type == SandboxEntryType.REVERSAL else "credit",
        payment.payer_name,
        payment.payer_bank_code,
    )
