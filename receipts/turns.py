"""A bank's turn for a single call outside the rounds, which somebody waits for."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db.models.functions import Now

import banks
from receipts.models import Turn
from receipts.pace import Pace

# Longer than any call.
LEASE = timedelta(seconds=30)
# Rounds leave a bank alone each second, for the rest of it.
PATIENCE_SECONDS, EVERY_SECONDS = 3.0, 0.1
# One at a time in a process: whoever waits has one of the few threads that serve shops and banks as well.
_asking = threading.Lock()


class Busy(Exception):
    """The bank is being asked about other things."""


@contextmanager
def of(bank: str) -> Iterator[None]:
    """Nobody else asks the bank meanwhile, nor right after the one call in the block. Raises Busy."""
    if not _asking.acquire(blocking=False):
        raise Busy
    try:
        Turn.objects.bulk_create([Turn(bank=bank, free_at=Now())], ignore_conflicts=True)
        ours = _taken(bank)
        try:
            yield
        finally:
            pause = Pace(banks.asked()[bank]).pause_after(1)
            Turn.objects.filter(pk=bank, free_at=ours.free_at).update(free_at=Now() + pause)
    finally:
        _asking.release()


def _taken(bank: str) -> Turn:
    patience_ends = time.monotonic() + PATIENCE_SECONDS
    while not Turn.objects.filter(pk=bank, free_at__lte=Now()).update(free_at=Now() + LEASE):
        if time.monotonic() > patience_ends:
            raise Busy
        time.sleep(EVERY_SECONDS)
    return Turn.objects.get(pk=bank)
