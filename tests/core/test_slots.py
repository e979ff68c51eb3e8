"""Slots limit what runs at once in a process, in total and for one party."""

from contextlib import ExitStack

import pytest

from core.slots import NoFreeSlot, Slots


def test_slots_beyond_the_total_are_refused_whoever_asks() -> None:
    slots = Slots()
    with ExitStack() as held:
        for key in ("a", "b"):
            held.enter_context(slots.held(key, total=2, share=1))
        with pytest.raises(NoFreeSlot), slots.held("c", total=2, share=1):
            pass
        assert slots.taken == 2
    with slots.held("c", total=2, share=1):
        assert slots.taken == 1


def test_one_key_gets_its_share_and_others_get_the_rest() -> None:
    slots = Slots()
    with slots.held("a", total=2, share=1):
        with pytest.raises(NoFreeSlot), slots.held("a", total=2, share=1):
            pass
        with slots.held("b", total=2, share=1):
            assert slots.taken == 2


def test_work_that_fails_gives_its_slot_back() -> None:
    slots = Slots()
    with pytest.raises(ZeroDivisionError), slots.held("a", total=1, share=1):
        _ = 1 / 0
    assert slots.taken == 0
