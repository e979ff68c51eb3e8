import json
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import asdict
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from banks.reading import YEARS
from core import money
from receipts import reconciling
from receipts.reconciling import Day, Difference, Side


class Command(BaseCommand):
    help = (
        "Compare a day of the banks' statements, by the calendar of Bangkok, with our receipts. Prints each "
        "difference and both sums, and says if no statement of the day was imported; fails on any difference."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("date", type=_day, metavar="DATE", help="Such as 2026-11-21.")
        parser.add_argument("--bank", help="Only this one, such as sandbox.")
        parser.add_argument("--json", action="store_true", help="An object a line.")

    def handle(self, *args: Any, **options: Any) -> None:
        day, as_json = options["date"], options["json"]
        known = reconciling.banks_of(day)
        banks = [options["bank"]] if options["bank"] else known
        if strange := set(banks) - set(known):
            raise CommandError(f"No merchant has the bank {strange.pop()!r}.")
        wrong = sum(self._bank(bank, day, as_json=as_json) for bank in banks)
        if wrong:
            raise CommandError(f"Differences on {day}: {wrong}.")

    def _bank(self, bank: str, day: date, *, as_json: bool) -> int:
        """How many differences there are; sums that differ by nothing else are one."""
        count, summed = 0, reconciling.summed(bank, day)
        for count, difference in enumerate(reconciling.differences(bank, day), 1):  # noqa: B007
            self.stdout.write(json.dumps(asdict(difference)) if as_json else _row(difference))
        self.stdout.write(json.dumps(asdict(summed)) if as_json else _sums(summed))
        if not summed.is_told:
            self.stderr.write(f"{bank}: no statement of {day} was imported.", self.style.WARNING)
        return count or int(summed.theirs != summed.ours)


def _day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.year not in YEARS:
        raise ArgumentTypeError(f"{text!r} is no date such as 2026-11-21")
    return day


def _row(found: Difference) -> str:
    amount = "" if found.amount is None else money.display(found.amount)
    return (
        f"{found.bank:<10} {found.what:<26} {amount:>18}  {found.reference1:<20} {found.detail:<30} "
        f"{found.subject_id}"
    )


def _sums(day: Day) -> str:
    return f"{day.bank}: the bank {_side(day.theirs)}; we {_side(day.ours)}"


def _side(side: Side) -> str:
    credits = f"{side.credits} credits of {money.display(side.credit)}"
    return f"{credits}, {side.debits} debits of {money.display(side.debit)}"
