"""Identifiers: their shape, their order, and that no two are the same."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from core import ids

NOON = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)
WHOLE = "0" * 27


@pytest.mark.parametrize("prefix", ["pay_", "qr_", "wh_", "txn_", "ref_", "wd_", "evt_", "dlv_", "mch_"])
def test_id_is_prefix_and_27_base62_characters(prefix: str) -> None:
    made = ids.new(prefix, NOON)
    assert re.fullmatch(prefix + "[0-9A-Za-z]{27}", made)
    assert ids.looks_right(made, prefix)
    assert len(made) <= ids.MAX_LENGTH


def test_ids_of_a_later_instant_sort_later() -> None:
    start = datetime(2023, 11, 15, tzinfo=UTC)
    for step in (timedelta(days=10), timedelta(seconds=1), timedelta(milliseconds=1)):
        made = [ids.new("pay_", start + number * step) for number in range(1000)]
        assert made == sorted(made)
    end_of_second = NOON + timedelta(microseconds=999_999)
    assert (
        ids.new("pay_", NOON) < ids.new("pay_", end_of_second) < ids.new("pay_", NOON + timedelta(seconds=1))
    )


def test_each_letter_appears_at_each_random_place() -> None:
    made = [ids.new("pay_", NOON)[-ids.RANDOM_LENGTH :] for _ in range(5_000)]
    assert all(set(letters) == set(ids.ALPHABET) for letters in zip(*made, strict=True))


def test_ids_of_a_time_range_sort_between_the_first_ids_of_start_and_end() -> None:
    begin, end = ids.first("pay_", NOON), ids.first("pay_", NOON + timedelta(seconds=60))
    inside = [ids.new("pay_", NOON + timedelta(milliseconds=ms)) for ms in (0, 1, 999, 59_999)]
    assert all(begin <= made < end for made in inside)
    assert ids.new("pay_", NOON - timedelta(milliseconds=1)) < begin
    assert ids.new("pay_", NOON + timedelta(seconds=60)) >= end


def test_first_id_of_a_millisecond_sorts_after_those_of_the_one_before() -> None:
    for ms in range(1, 1000, 7):
        at = NOON + timedelta(milliseconds=ms)
        before = ids.new("pay_", at - timedelta(milliseconds=1))
        assert before < ids.first("pay_", at) <= ids.new("pay_", at)


@pytest.mark.slow
def test_hundred_thousand_ids_of_one_second_are_unique() -> None:
    assert len({ids.new("pay_", NOON) for _ in range(100_000)}) == 100_000


def test_id_for_a_time_before_the_epoch_is_valid() -> None:
    assert ids.looks_right(ids.new("pay_", datetime(1970, 1, 1, tzinfo=UTC)), "pay_")


def test_malformed_ids_are_rejected() -> None:
    for value in [
        *("", "pay_", "pay_" + WHOLE[1:], "pay_" + WHOLE + "0", "qr_" + WHOLE, WHOLE, "PAY_" + WHOLE),
        *("pay_" + WHOLE + "\n", " pay_" + WHOLE, "pay_" + WHOLE[:-1] + "-", "pay_" + WHOLE[:-1] + "é"),
        *("pay_" + WHOLE[:-1] + "٠", "pay_" + WHOLE[:-1] + "\0", "pay_pay_" + WHOLE),
        *(None, 1, True, ["pay_" + WHOLE], b"pay_" + WHOLE.encode()),
    ]:
        assert not ids.looks_right(value, "pay_")


def test_random_text_contains_only_the_given_alphabet() -> None:
    assert re.fullmatch("[01]{200}", ids.random_text(200, "01"))
    assert ids.random_text(0) == ""
