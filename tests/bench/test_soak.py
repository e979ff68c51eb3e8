"""What a soak run leaves: the growth of memory and of tables."""

import pytest

from bench.lives import REQUESTS, LivesResult, joined, quantile
from bench.soak import Snapshot, growth, slope


def test_slope_of_memory_leaves_out_the_first_minute() -> None:
    assert slope([50, 100, 102, 104]) == pytest.approx(2)
    assert slope([50, 100, 100, 100]) == pytest.approx(0)


def test_slope_of_too_few_minutes_is_zero() -> None:
    assert slope([50, 100]) == 0


def test_growth_is_what_each_payment_leaves() -> None:
    before = Snapshot(wal_bytes=1000, full_pages=1, tables={"small": (0, 0, 5), "large": (100, 50, 0)})
    after = Snapshot(wal_bytes=3000, full_pages=2, tables={"small": (20, 0, 7), "large": (1100, 250, 3)})
    found = growth(before, after, payments=10)
    assert (found.wal_bytes, found.full_page_bytes) == (200, 819.2)
    assert [(each.name, each.row_bytes, each.index_bytes, each.dead_rows) for each in found.largest] == [
        ("large", 100, 20, 3),
        ("small", 2, 0, 7),
    ]


def test_quantile_is_in_milliseconds() -> None:
    assert quantile([0.001 * number for number in range(100)], 0.99) == pytest.approx(99)
    assert quantile([], 0.99) == 0


def test_minutes_together_have_the_lives_of_all_minutes() -> None:
    minutes = [
        LivesResult({name: [seconds] for name in REQUESTS}, webhooks=[seconds], late=[0.0], seconds=60)
        for seconds in (0.1, 0.2)
    ]
    whole = joined(minutes)
    assert (whole.count, whole.seconds, whole.webhooks) == (2, 120, [0.1, 0.2])
    assert len(whole.all_requests) == 2 * len(REQUESTS)
