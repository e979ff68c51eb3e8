"""Whether two names are of one person, on labelled pairs: what a merchant writes, and what banks report."""

import csv
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from core.thai import person_names
from tests.stack import ROOT

with (ROOT / "tests" / "data" / "payer-names.tsv").open(encoding="utf-8") as file:
    PAIRS = [(row["matches"], row["merchant"], row["bank"]) for row in csv.DictReader(file, delimiter="\t")]


def test_most_labelled_pairs_are_right_and_nobody_else_is_the_client() -> None:
    results = Counter(
        (label, person_names.compare(expected, reported)) for label, expected, reported in PAIRS
    )
    assert results.total() >= 300
    assert sum(results[label, label] for label in ("yes", "no", "unknown")) / results.total() >= 0.95
    assert results["no", "yes"] == results["unknown", "yes"] == 0


@pytest.mark.parametrize(
    ("expected", "reported", "result"),
    [
        ("สมชาย ใจดี", "นาย สมชาย ใจดี", "yes"),
        ("สมชาย ใจดี", "นาย สมชาย ใ", "yes"),
        ("สมชาย ใจดี", "MR SOMCHAI JAIDEE", "yes"),
        ("สมชาย ใจดี", "น.ส.สมหญิง ใจดี", "no"),
        ("สมชาย ใจดี", "นายสมชัย ใจดี", "no"),
        ("สมชาย ใจดี", "นาย สมชาย", "unknown"),
        ("คุณากร ใจดี", "MR KUNAKORN JAIDEE", "yes"),
        ("บจก. ส้มตำ", "นายส้มตำ", "no"),
        ("", "", "unknown"),
        ("", "สมชาย", "unknown"),
        ("佐藤 太郎", "MR TARO SATO", "unknown"),
    ],
)
def test_names_are_compared_fairly(expected: str, reported: str, result: str) -> None:
    assert person_names.compare(expected, reported) == result


@given(st.text(max_size=140), st.text("นายสมชใจดี์รรทเแ ().ม*/a-Zกg", max_size=140))
def test_any_two_texts_have_a_result(one: str, other: str) -> None:
    assert person_names.compare(one, other) in ("yes", "no", "unknown")
    assert person_names.compare(other, one) in ("yes", "no", "unknown")


def test_longest_names_are_compared_in_bounded_work() -> None:
    assert person_names.compare("สมชาย" * 28, "somchai" * 20) != "no"
    assert person_names.compare("a/" * 70, "ข/" * 70) == "no"
