from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core import clock
from core.commands import ProgressBar
from operations.audit import runner


class Command(BaseCommand):
    help = (
        "Prove that accounts, journals, payments, refunds, withdrawals, transfers and events agree. "
        "Prints each difference, and fails if there is any. The service may run meanwhile."
    )

    def handle(self, *args: Any, **options: Any) -> str:
        with runner.snapshot():
            count = self._differences()
            for waiting in runner.overdue_transfers(clock.now()):
                self.stderr.write(f"Ask the bank: {waiting}", self.style.WARNING)
        if count:
            raise CommandError(f"The books are wrong. Differences: {count}.")
        return f"The books are right: {len(runner.RULES)} rules hold."

    def _differences(self) -> int:
        count, bar = 0, ProgressBar(self.stderr, "audit", lambda: len(runner.RULES))
        for difference in runner.differences(on_progress=bar.advance):
            count += 1
            bar.clear()
            self.stdout.write(str(difference))
        bar.clear()
        return count
