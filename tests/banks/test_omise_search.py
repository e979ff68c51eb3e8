"""A charge without a known id is searched among all charges of its time."""

import itertools
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from banks import ChargeResult
from banks import omise as adapter
from banks.omise import SEARCH_WINDOWS, Omise
from core import clock
from tests.banks.fake_omise import FakeOmise

AT = datetime(2026, 11, 21, 3, 4, 5, 678_000, tzinfo=UTC)
FIRST, LAST = min(begin for begin, _ in SEARCH_WINDOWS), max(end for _, end in SEARCH_WINDOWS)


@pytest.fixture
def api() -> Iterator[FakeOmise]:
    with FakeOmise.running() as acquirer:
        yield acquirer


def find(api: FakeOmise) -> ChargeResult:
    return Omise("skey_test_1", api.base_url).find("pay_1", charge_id="", starts_at=AT)


def add_charges(
    api: FakeOmise, per_second: int, *, seconds: int = 600, ours_after: float | None = 2.0
) -> None:
    """Add charges of others in each second around ours, which is `ours_after` seconds after we stored it."""
    is_missing = ours_after is not None
    for second in range(-seconds, seconds):
        for number in range(per_second):
            if is_missing and ours_after is not None and second >= ours_after:
                api.add("pay_1", AT + timedelta(seconds=ours_after))
                is_missing = False
            api.add(f"pay_x{second}_{number}", AT + timedelta(seconds=second))


@pytest.mark.slow
def test_charge_is_found_at_ten_charges_a_second(api: FakeOmise) -> None:
    add_charges(api, 10)
    assert len(api.charges) > 10_000
    assert find(api).outcome == "succeeded"
    assert len(api.pages) <= 2


@pytest.mark.slow
def test_charge_is_found_at_a_hundred_charges_a_second(api: FakeOmise) -> None:
    add_charges(api, 100, seconds=70, ours_after=3.0)
    assert find(api).outcome == "succeeded"


@pytest.mark.parametrize("after", [-59.0, -1.0, 0.0, 4.0, 14.0, 43.0, 59.0, 119.0])
def test_charge_is_found_in_every_second_of_search_window(api: FakeOmise, after: float) -> None:
    api.add("pay_1", AT + timedelta(seconds=after))
    assert find(api).outcome == "succeeded"


def test_charge_outside_all_pages_is_missing(api: FakeOmise) -> None:
    add_charges(api, 3, ours_after=None)
    assert find(api) == ChargeResult("missing")
    second = AT.replace(microsecond=0)
    windows = sorted((page["from"], page["to"]) for page in api.pages)
    assert windows[0][0] == clock.iso(second + timedelta(seconds=FIRST))
    assert max(end for _, end in windows) == clock.iso(second + timedelta(seconds=LAST))
    assert all(begin < end for (_, end), (begin, _) in itertools.pairwise(windows))  # no gaps


def test_short_pages_are_read_to_the_end(api: FakeOmise) -> None:
    api.page_limit = 7
    add_charges(api, 10, seconds=10, ours_after=3.0)
    assert find(api).outcome == "succeeded"


def test_incomplete_list_is_unknown(api: FakeOmise) -> None:
    add_charges(api, 1, seconds=10, ours_after=None)
    api.hides_rows = True
    assert find(api) == ChargeResult("unknown")


@pytest.mark.parametrize(("limit", "value"), [("MAX_PAGES", 3), ("SEARCH_SECONDS", -1.0)])
def test_search_beyond_limit_is_unknown_and_logged(
    api: FakeOmise,
    limit: str,
    value: float,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(adapter, limit, value)
    add_charges(api, 100, seconds=10, ours_after=None)
    with caplog.at_level(logging.ERROR):
        assert find(api) == ChargeResult("unknown")
    assert "pay_1 is not found: too many charges" in caplog.text
