import json
from argparse import ArgumentParser
from contextlib import nullcontext
from dataclasses import asdict
from datetime import date, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core import clock, money
from core.commands import read_day
from ledger import accounts
from operations.models import JobRun, NightlyJob
from operations.nightly import runs
from reconciliation.statements import reconciliation
from reconciliation.statements.reconciliation import DayComparison, Difference


class Command(BaseCommand):
    help = (
        "Compare a day of the banks' statements, in Bangkok time, with our bank transactions. Prints each "
        "difference and both totals. Warns if no statement of the day was imported. Fails on differences."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("date", type=read_day, metavar="DATE", help="Such as 2026-11-21.")
        parser.add_argument("--bank", help="Only this one, such as sandbox.")
        parser.add_argument("--json", action="store_true", help="Print one JSON object per line.")

    def handle(self, *args: Any, **options: Any) -> None:
        day, as_json = options["date"], options["json"]
        all_banks = reconciliation.banks_with_activity(day)
        banks = [options["bank"]] if options["bank"] else all_banks
        if unknown := set(banks) - set(all_banks):
            raise CommandError(f"No merchant has the bank {unknown.pop()!r}.")
        # A run of the nightly job, if this compares what the job does.
        yesterday = clock.now().astimezone(clock.BANGKOK).date() - timedelta(days=1)
        is_whole_job = options["bank"] is None and day == yesterday
        with runs.by_command(NightlyJob.RECONCILE) if is_whole_job else nullcontext(JobRun()) as run:
            found = {bank: self._compare_bank(bank, day, as_json=as_json) for bank in banks}
            run.differences = sum(count for bank, count in found.items() if bank != accounts.SANDBOX)
        if differences := sum(found.values()):
            raise CommandError(f"Differences on {day}: {differences}.")

    def _compare_bank(self, bank: str, day: date, *, as_json: bool) -> int:
        """The number of differences; totals that differ without any other difference count as one."""
        count, comparison = 0, reconciliation.compare_totals(bank, day)
        for count, difference in enumerate(reconciliation.find_differences(bank, day), 1):  # noqa: B007
            self.stdout.write(json.dumps(asdict(difference)) if as_json else _format_difference(difference))
        self.stdout.write(json.dumps(asdict(comparison)) if as_json else _format_comparison(comparison))
        if not comparison.has_statement:
            self.stderr.write(f"{bank}: no statement of {day} was imported.", self.style.WARNING)
        return count or int(comparison.theirs != comparison.ours)


def _format_difference(difference: Difference) -> str:
    amount = "" if difference.amount is None else money.display(difference.amount)
    return (
        f"{difference.bank:<10} {difference.what:<26} {amount:>18}  {difference.reference1:<20} "
        f"{difference.detail:<30} {difference.subject_id}"
    )


def _format_comparison(comparison: DayComparison) -> str:
    theirs, ours = (
        f"{totals['credits']} credits of {money.display(totals['credit'])}, "
        f"{totals['debits']} debits of {money.display(totals['debit'])}"
        for totals in (comparison.theirs, comparison.ours)
    )
    return f"{comparison.bank}: the bank {theirs}; we {ours}"
