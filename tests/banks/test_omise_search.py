"""A charge whose id was never heard is looked for among all charges of its time, however many there are."""

import itertools
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from banks import Said
from banks import omise as adapter
from banks.omise import SPANS, Omise
from core import clock
from tests.banks.omise_stand_in import OmiseStandIn, omise

AT = datetime(2026, 11, 21, 3, 4, 5, 678_000, tzinfo=UTC)
FIRST, LAST = min(begin for begin, _ in SPANS), max(end for _, end in SPANS)


@pytest.fixture
def api() -> Iterator[OmiseStandIn]:
    with omise() as stand_in:
        yield stand_in


def find(api: OmiseStandIn) -> Said:
    return Omise("skey_test_1", api.base_url).find("pay_1", charge_id="", since=AT)


def crowd(api: OmiseStandIn, per_second: int, *, seconds: int = 600, ours_after: float | None = 2.0) -> None:
    """So many charges of others in each second around ours, which was made so long after we wrote it down."""
    is_missing = ours_after is not None
    for second in range(-seconds, seconds):
        for number in range(per_second):
            if is_missing and ours_after is not None and second >= ours_after:
                api.add("pay_1", AT + timedelta(seconds=ours_after))
                is_missing = False
            api.add(f"pay_x{second}_{number}", AT + timedelta(seconds=second))


def test_charge_is_found_at_ten_charges_a_second(api: OmiseStandIn) -> None:
    crowd(api, 10)
    assert len(api.charges) > 10_000
    assert find(api).outcome == "succeeded"
    assert len(api.pages) <= 2


def test_charge_is_found_at_a_hundred_charges_a_second(api: OmiseStandIn) -> None:
    crowd(api, 100, seconds=70, ours_after=3.0)
    assert find(api).outcome == "succeeded"


@pytest.mark.parametrize("after", [-59.0, -1.0, 0.0, 4.0, 14.0, 43.0, 59.0, 119.0])
def test_charge_of_any_second_that_it_may_have_is_found(api: OmiseStandIn, after: float) -> None:
    api.add("pay_1", AT + timedelta(seconds=after))
    assert find(api).outcome == "succeeded"


def test_charge_that_is_in_no_page_of_its_time_is_missing(api: OmiseStandIn) -> None:
    crowd(api, 3, ours_after=None)
    assert find(api) == Said("missing")
    second = AT.replace(microsecond=0)
    asked = sorted((page["from"], page["to"]) for page in api.pages)
    assert asked[0][0] == clock.iso(second + timedelta(seconds=FIRST))
    assert max(end for _, end in asked) == clock.iso(second + timedelta(seconds=LAST))
    assert all(begin < end for (_, end), (begin, _) in itertools.pairwise(asked))  # no gaps


def test_pages_that_show_fewer_rows_than_asked_for_are_read_to_the_end(api: OmiseStandIn) -> None:
    api.page_limit = 7
    crowd(api, 10, seconds=10, ours_after=3.0)
    assert find(api).outcome == "succeeded"


def test_rows_that_are_counted_but_not_shown_prove_nothing(api: OmiseStandIn) -> None:
    crowd(api, 1, seconds=10, ours_after=None)
    api.hides_rows = True
    assert find(api) == Said("unknown")


@pytest.mark.parametrize(("limit", "value"), [("MOST_PAGES", 3), ("SEARCH_SECONDS", -1.0)])
def test_search_beyond_its_bounds_proves_nothing_and_says_so(
    api: OmiseStandIn,
    limit: str,
    value: float,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(adapter, limit, value)
    crowd(api, 100, seconds=10, ours_after=None)
    with caplog.at_level(logging.ERROR):
        assert find(api) == Said("unknown")
    assert "pay_1 is not found: too many charges" in caplog.text
