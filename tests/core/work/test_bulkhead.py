"""Slots limit what runs at once in a process, in total and for one party."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from core.work.bulkhead import Bulkhead, BulkheadFull


def test_bulkhead_refuses_beyond_total() -> None:
    slots = Bulkhead()
    with ExitStack() as held:
        for key in ("a", "b"):
            held.enter_context(slots.hold(key, total=2, share=1))
        with pytest.raises(BulkheadFull), slots.hold("c", total=2, share=1):
            pass
        assert slots.taken == 2
    with slots.hold("c", total=2, share=1):
        assert slots.taken == 1


def test_bulkhead_limits_share_of_one_key() -> None:
    slots = Bulkhead()
    with slots.hold("a", total=2, share=1):
        with pytest.raises(BulkheadFull), slots.hold("a", total=2, share=1):
            pass
        with slots.hold("b", total=2, share=1):
            assert slots.taken == 2


def test_bulkhead_slot_is_released_on_error() -> None:
    slots = Bulkhead()
    with pytest.raises(ZeroDivisionError), slots.hold("a", total=1, share=1):
        _ = 1 / 0
    assert slots.taken == 0


def test_bulkhead_waits_for_a_free_slot() -> None:
    slots, is_held, may_end = Bulkhead(), threading.Event(), threading.Event()

    def hold() -> None:
        with slots.hold("a", total=1, share=1):
            is_held.set()
            may_end.wait()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(hold)
        is_held.wait()
        with pytest.raises(BulkheadFull), slots.hold("b", total=1, share=1, wait_seconds=0.01):
            pass
        threading.Timer(0.01, may_end.set).start()
        with slots.hold("b", total=1, share=1, wait_seconds=60):
            assert slots.taken == 1
