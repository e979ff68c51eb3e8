from typing import Any

from django.core.management.base import BaseCommand, CommandError

from console.audit import checking
from core import clock
from core.progress import Bar


class Command(BaseCommand):
    help = (
        "Prove the books: accounts, journals, payments, refunds, withdrawals, orders to banks and events "
        "agree. Prints each difference, and fails if there is any. The service may run meanwhile."
    )

    def handle(self, *args: Any, **options: Any) -> str:
        with checking.snapshot():
            count = self._differences()
            for waiting in checking.long_under_way(clock.now()):
                self.stderr.write(f"Ask the bank: {waiting}", self.style.WARNING)
        if count:
            raise CommandError(f"The books are wrong. Differences: {count}.")
        return f"The books are right: {len(checking.RULES)} rules hold."

    def _differences(self) -> int:
        count, bar = 0, Bar(self.stderr, "audit", lambda: len(checking.RULES))
        for difference in checking.differences(passed=bar.advance):
            count += 1
            bar.clear()
            self.stdout.write(str(difference))
        bar.clear()
        return count
