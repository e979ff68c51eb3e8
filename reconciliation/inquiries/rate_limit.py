"""How many calls a bank takes per second, and a single call outside of batches that a user waits for."""

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate
from typing import Any

from django.db.models.functions import Now

import banks
from banks import Bank, InquiryRequest
from core.deadlines import Deadline
from reconciliation.models import BankRateLimit

LEASE = timedelta(seconds=30)  # longer than any call
# Batches release a bank after about a second.
PATIENCE_SECONDS, POLL_SECONDS = 3.0, 0.1
MAX_PARALLEL_CALLS = 32  # maximum number of parallel calls in one batch, even if a bank allows a higher rate
# Slips get a quarter of a bank's time, so that inquiries make progress however many slips are checked.
REST_AFTER_SLIP = 3
# One waiting call per process, because it holds one of the few threads that serve all requests.
_in_use = threading.Lock()


class BankBusy(Exception):
    """Another call of this process, or a batch, uses the bank's rate limit."""


def ensure_rows(banks: Iterable[str]) -> None:
    """Create the rate limits of banks that are called for the first time."""
    limits = [BankRateLimit(bank=bank, available_at=Now()) for bank in sorted(banks)]
    BankRateLimit.objects.bulk_create(limits, ignore_conflicts=True)


@contextmanager
def exclusive_call(bank: str, *, is_about_slip: bool = False) -> Iterator[None]:
    """Lease the bank for the one call of the block, and pause it as its rate requires. Raises BankBusy."""
    if not _in_use.acquire(blocking=False):
        raise BankBusy
    try:
        ensure_rows([bank])
        lease, started = _acquire(bank, {"slips_at__lte": Now()} if is_about_slip else {}), time.monotonic()
        try:
            yield
        finally:
            pause = CallBudget(banks.configured_banks()[bank]).pause_after(1)
            limit = BankRateLimit.objects.filter(pk=bank)
            limit.filter(available_at=lease.available_at).update(available_at=Now() + pause)
            if is_about_slip:
                taken = timedelta(seconds=time.monotonic() - started) + pause
                limit.update(slips_at=Now() + pause + REST_AFTER_SLIP * taken)
    finally:
        _in_use.release()


def _acquire(bank: str, conditions: Mapping[str, Any]) -> BankRateLimit:
    deadline = Deadline.after(PATIENCE_SECONDS)
    available = BankRateLimit.objects.filter(pk=bank, available_at__lte=Now(), **conditions)
    while not available.update(available_at=Now() + LEASE):
        if deadline.is_past:
            raise BankBusy
        time.sleep(POLL_SECONDS)
    return BankRateLimit.objects.get(pk=bank)


@dataclass(frozen=True, slots=True)
class CallBudget:
    """The calls of one batch to a bank, for all merchants together."""

    bank: type[Bank]

    @property
    def max_calls(self) -> int:
        """The calls of one second, but at least one."""
        return min(max(int(self.bank.calls_per_second), 1), MAX_PARALLEL_CALLS)

    def fit(self, questions: Sequence[InquiryRequest], room: int) -> list[int]:
        """The calls for each of the first inquiries, at most `max_calls`, as far as they fit into `room`."""
        costs = [min(self.bank.calls_needed(each), self.max_calls) for each in questions]
        return [cost for cost, total in zip(costs, accumulate(costs), strict=True) if total <= room]

    def pause(self, questions: Sequence[InquiryRequest]) -> timedelta:
        return self.pause_after(sum(self.bank.calls_needed(each) for each in questions))

    def pause_after(self, calls: int) -> timedelta:
        return timedelta(seconds=calls / self.bank.calls_per_second)
