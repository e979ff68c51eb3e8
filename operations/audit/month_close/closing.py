"""The books of a month in Bangkok time, and its close: signed totals that each contain the hash before."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

import orjson
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from audit_trail import recording
from audit_trail.acts import Act
from core import clock, dates, money
from ledger.accounts import SANDBOX
from merchants.models import Merchant
from operations.audit import runner
from operations.audit.daily_close import closing as daily
from operations.audit.daily_close.closing import CLOSABLE_AFTER, NotClosable
from operations.audit.month_close import categories, questions
from operations.audit.month_close.categories import Party
from operations.audit.month_close.questions import Item
from operations.models import MonthClose


@dataclass(frozen=True, slots=True)
class Books:
    """A month: where its money belongs, what somebody must answer, and what is on the way."""

    month: date
    parties: list[Party]
    lines: list[dict[str, Any]]
    open: list[Item]
    on_the_way: list[Item]
    corrections: list[dict[str, Any]]

    @property
    def total(self) -> Party:
        return categories.total(self.parties)

    @property
    def remainder(self) -> int:
        """Satang in question: each of them counts, whatever its sign."""
        return sum(abs(each.amount or 0) for each in self.open)

    @property
    def refusal(self) -> str:
        """Why the month cannot be closed while something is open."""
        text = _("Questions are open: %(count)s. Remainder: %(amount)s.")
        return text % {"count": len(self.open), "amount": money.display(self.remainder)}

    def as_json(self) -> dict[str, Any]:
        start, end = bounds(self.month)
        return {
            "month": f"{self.month:%Y-%m}",
            "starts_at": clock.iso(start),
            "ends_at": clock.iso(end),
            "currency": money.CURRENCY,
            "parties": [each.as_json() for each in self.parties],
            "total": self.total.as_json(),
            "statement_lines": self.lines,
            "remainder": self.remainder,
            "open": [each.as_json() for each in self.open],
            "on_the_way": [each.as_json() for each in self.on_the_way],
            "corrections": self.corrections,
        }


def next_month(month: date) -> date:
    return (month + timedelta(days=31)).replace(day=1)


def bounds(month: date) -> tuple[datetime, datetime]:
    """The first instant of a month in Bangkok, and the first one after it."""
    return dates.midnight(month), dates.midnight(next_month(month))


def month_of(at: datetime) -> date:
    return at.astimezone(clock.BANGKOK).date().replace(day=1)


def newest() -> MonthClose | None:
    return MonthClose.objects.order_by("number").last()


def due(now: datetime) -> date:
    """The month that is closed next: after the newest close, or else the last one that has ended."""
    last = newest()
    return next_month(last.month) if last else month_of(dates.midnight(month_of(now)) - timedelta(days=1))


def check(month: date, now: datetime, *, is_sandbox: bool = False) -> None:
    """Raises NotClosable for a month that is not over, or that was before all entries."""
    end = bounds(month)[1]
    if now < end + CLOSABLE_AFTER:
        raise NotClosable(_("%s is not over, or ended less than ten minutes ago.") % f"{month:%Y-%m}")
    first = categories.first_entry(is_sandbox=is_sandbox)
    if first is None or end <= first:
        text = _("%s is before the first entry of live money. --sandbox shows the money of the sandbox bank.")
        if is_sandbox:
            text = _("%s is before the first entry of the ledger.")
        raise NotClosable(text % f"{month:%Y-%m}")


def read(month: date, now: datetime, *, is_sandbox: bool = False) -> Books:
    """The books of a month as they are now: of live money, or of that of the sandbox bank."""
    (start, end), after = bounds(month), next_month(month)
    parties = categories.parties(start, end, is_sandbox=is_sandbox)
    names = {*Merchant.objects.banks(), *(party.name for party in parties)}
    banks = sorted(each for each in names if (each == SANDBOX) == is_sandbox)

    def of_these(found: Iterator[Item]) -> list[Item]:
        return [each for each in found if (each.party == SANDBOX) == is_sandbox]

    asked = [
        *questions.unexplained(parties, now, is_sandbox=is_sandbox),
        *questions.not_on_the_way(now, is_sandbox=is_sandbox),
        *of_these(questions.open_questions(banks, month, after, end, now)),
    ]
    months = MonthClose.objects.filter(month__lt=month).values_list("month", flat=True)
    closed = {f"{each:%Y-%m}" for each in months}
    return Books(
        month=month,
        parties=parties,
        lines=categories.statement_lines(banks, month, after),
        open=asked,
        on_the_way=of_these(questions.on_the_way(end, asked)),
        corrections=questions.corrections(start, end, closed, is_sandbox=is_sandbox),
    )


def close(month: date, *, now: datetime) -> MonthClose:
    """Sign the month from one snapshot. Raises NotClosable, signing.NoSigningKey; then nothing changes."""
    check(month, now)
    with runner.snapshot():
        previous = newest()
        if previous is not None and month != next_month(previous.month):
            raise NotClosable(_("The newest closed month is %s: close the next one.") % previous)
        books, chained = read(month, now), daily.chained(previous, now)
    if books.open:
        raise NotClosable(books.refusal)
    body = orjson.dumps(books.as_json() | chained).decode()
    made = daily.signed(MonthClose, body, previous, month=month)
    try:
        with transaction.atomic():
            made.save(force_insert=True)
            recording.write(Act.MONTH_CLOSED, made, after={"month": f"{month:%Y-%m}", "hash": made.hash})
    except IntegrityError:
        raise NotClosable(_("Somebody else closed %s at the same time.") % f"{month:%Y-%m}") from None
    return made


def findings() -> Iterator[tuple[str, str]]:
    """What is wrong with the closes, as (id, text). Compares each one with the ledger of today."""
    previous: MonthClose | None = None
    for each in MonthClose.objects.order_by("number").iterator(chunk_size=10):
        name = f"close of {each.month:%Y-%m}"
        yield from ((name, text) for text in daily.problems(each, previous))
        parties = categories.parties(*bounds(each.month), is_sandbox=False)
        if [party.as_json() for party in parties] != orjson.loads(each.body)["parties"]:
            yield name, "the ledger has other totals"
        previous = each
