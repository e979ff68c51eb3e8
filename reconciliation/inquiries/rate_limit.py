"""A bank's turn for a single call outside the rounds, which somebody waits for."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate

from django.db.models.functions import Now

import banks
from banks import Bank, InquiryRequest
from reconciliation.models import BankRateLimit

# Longer than any call.
LEASE = timedelta(seconds=30)
# Rounds leave a bank alone each second, for the rest of it.
PATIENCE_SECONDS, POLL_SECONDS = 3.0, 0.1
# One at a time in a process: whoever waits has one of the few threads that serve shops and banks as well.
_in_use = threading.Lock()


class BankBusy(Exception):
    """The bank is being asked about other things."""


@contextmanager
def exclusive_call(bank: str) -> Iterator[None]:
    """Nobody else asks the bank meanwhile, nor right after the one call in the block. Raises Busy."""
    if not _in_use.acquire(blocking=False):
        raise BankBusy
    try:
        BankRateLimit.objects.bulk_create(
            [BankRateLimit(bank=bank, available_at=Now())], ignore_conflicts=True
        )
        lease = _acquire(bank)
        try:
            yield
        finally:
            pause = CallBudget(banks.banks_with_inquiry()[bank]).pause_after(1)
            BankRateLimit.objects.filter(pk=bank, available_at=lease.available_at).update(
                available_at=Now() + pause
            )
    finally:
        _in_use.release()


def _acquire(bank: str) -> BankRateLimit:
    patience_ends = time.monotonic() + PATIENCE_SECONDS
    while not BankRateLimit.objects.filter(pk=bank, available_at__lte=Now()).update(
        available_at=Now() + LEASE
    ):
        if time.monotonic() > patience_ends:
            raise BankBusy
        time.sleep(POLL_SECONDS)
    return BankRateLimit.objects.get(pk=bank)


# Side by side in one round, whatever a bank takes.
MAX_PARALLEL_CALLS = 32


@dataclass(frozen=True, slots=True)
class CallBudget:
    """Of one bank, all merchants together."""

    bank: type[Bank]

    @property
    def max_calls(self) -> int:
        """How many calls a round may make."""
        return min(max(int(self.bank.calls_per_second), 1), MAX_PARALLEL_CALLS)

    def fit(self, questions: Sequence[InquiryRequest], room: int) -> list[int]:
        """How many calls of the room each of the first questions takes, as far as they fit.

        One always fits into a whole room, however many calls it takes.
        """
        costs = [min(self.bank.calls_needed(each), self.max_calls) for each in questions]
        return [cost for cost, total in zip(costs, accumulate(costs), strict=True) if total <= room]

    def pause(self, questions: Sequence[InquiryRequest]) -> timedelta:
        """After the calls of these questions."""
        return self.pause_after(sum(self.bank.calls_needed(each) for each in questions))

    def pause_after(self, calls: int) -> timedelta:
        return timedelta(seconds=calls / self.bank.calls_per_second)
