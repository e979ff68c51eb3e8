"""Satang in, baht out, and the other way."""

import pytest
from hypothesis import given, strategies as st

from core import money


@pytest.mark.parametrize(
    ("satang", "baht", "shown"),
    [
        (0, "0.00", "0.00 THB"),
        (5, "0.05", "0.05 THB"),
        (100, "1.00", "1.00 THB"),
        (150_000, "1500.00", "1,500.00 THB"),
        (200_000_000, "2000000.00", "2,000,000.00 THB"),
        (-199, "-1.99", "-1.99 THB"),
    ],
)
def test_satang_is_written_as_baht(satang: int, baht: str, shown: str) -> None:
    assert money.baht(satang) == baht
    assert money.display(satang) == shown


@pytest.mark.parametrize(("text", "satang"), [("1500.00", 150_000), ("1500", 150_000), ("0.05", 5)])
def test_baht_is_read_as_satang(text: str, satang: int) -> None:
    assert money.satang(text) == satang


def test_malformed_baht_amount_is_refused() -> None:
    for text in ["", "1.0", "1.000", ".5", "1.", "-1", "01", "1,500.00", "1e3", "1\n", "٣", "NaN"]:
        with pytest.raises(ValueError, match="digits"):
            money.satang(text)


@given(st.integers(0, 10**15))
def test_satang_written_as_baht_is_read_back(satang: int) -> None:
    assert money.satang(money.baht(satang)) == satang
