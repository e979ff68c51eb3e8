"""A webhook that is switched off while codes are made misses nothing once it is on again."""

from collections import Counter

import pytest

from tests.flows.conftest import Till
from tests.flows.faults import load
from tests.flows.faults.hooks import Hook, events_by_payment, everything
from tests.receiver import Receiver, Reply
from tests.stack import wait_until

pytestmark = pytest.mark.slow


def first_instant(till: Till) -> str:
    """When the till's first event happened."""
    return str(everything(till, "/v1/events", "events")[-1]["timestamp"])


def test_what_was_held_by_the_merchants_wish_arrives_once(till: Till, hook: Hook) -> None:
    with load.steady(till) as codes:
        codes.wait_for_more(20)
        hook.switch("disabled")
        codes.wait_for_more(20)
        wait_until(lambda: hook.count("held") > 0, 60)
        hook.wait_for_none_waiting()
        quiet = hook.told()
        codes.wait_for_more(20)
        assert hook.told() == quiet
        hook.switch("active")
        codes.wait_for_more(20)

    hook.wait_for_none_waiting()
    told, held = events_by_payment(till), hook.count("held")
    assert held > 0
    assert hook.replay(first_instant(till)) == held
    hook.wait_for(set(told.values()), 60)
    hook.wait_for_none_waiting()
    assert hook.told() == Counter(told.values())


def test_what_was_held_after_a_410_arrives(till: Till, endpoint: Receiver, hook: Hook) -> None:
    endpoint.on("/hook", Reply(status=410))
    refused = till.qr_code()
    wait_until(lambda: hook.status == "disabled", 60)
    for _ in range(5):
        till.qr_code()
    hook.wait_for_none_waiting()
    told = events_by_payment(till)
    assert hook.count("held") == len(told) == 6

    endpoint.on("/hook", Reply())
    hook.switch("active")
    assert hook.replay(first_instant(till)) == 6
    hook.wait_for(set(told.values()), 60)
    hook.wait_for_success(6)
    assert hook.told() == Counter(told.values()) + Counter([told[refused["payment_id"]]])
