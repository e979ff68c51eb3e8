"""An amount is said in words: by a table, and by reading the words back."""

import re

import pytest
from hypothesis import given, strategies as st

from core import money
from core.thai.amounts_in_words import in_english, in_thai

DIGITS = {
    "หนึ่ง": 1,
    "เอ็ด": 1,
    "สอง": 2,
    "ยี่": 2,
    "สาม": 3,
    "สี่": 4,
    "ห้า": 5,
    "หก": 6,
    "เจ็ด": 7,
    "แปด": 8,
    "เก้า": 9,
}
PLACES = {"สิบ": 10, "ร้อย": 100, "พัน": 1_000, "หมื่น": 10_000, "แสน": 100_000}


@pytest.mark.parametrize(
    ("satang", "thai", "english"),
    [
        (0, "ศูนย์บาท", "zero baht"),
        (1, "หนึ่งสตางค์", "one satang"),
        (100, "หนึ่งบาท", "one baht"),
        (1000, "สิบบาท", "ten baht"),
        (1100, "สิบเอ็ดบาท", "eleven baht"),
        (2000, "ยี่สิบบาท", "twenty baht"),
        (2100, "ยี่สิบเอ็ดบาท", "twenty-one baht"),
        (10_000, "หนึ่งร้อยบาท", "one hundred baht"),
        (10_025, "หนึ่งร้อยบาทยี่สิบห้าสตางค์", "one hundred baht and twenty-five satang"),
        (10_100, "หนึ่งร้อยเอ็ดบาท", "one hundred one baht"),
        (150_050, "หนึ่งพันห้าร้อยบาทห้าสิบสตางค์", "one thousand five hundred baht and fifty satang"),
        (
            12_345_621,
            "หนึ่งแสนสองหมื่นสามพันสี่ร้อยห้าสิบหกบาทยี่สิบเอ็ดสตางค์",
            "one hundred twenty-three thousand four hundred fifty-six baht and twenty-one satang",
        ),
        (100_000_000, "หนึ่งล้านบาท", "one million baht"),
        (100_000_100, "หนึ่งล้านเอ็ดบาท", "one million one baht"),
        (200_000_000, "สองล้านบาท", "two million baht"),
        (2_100_000_000, "ยี่สิบเอ็ดล้านบาท", "twenty-one million baht"),
    ],
)
def test_amount_in_words(satang: int, thai: str, english: str) -> None:
    assert in_thai(satang) == thai
    assert in_english(satang) == english


def read(words: str) -> int:
    """The number of Thai words."""
    total, unread = 0, words
    if "ล้าน" in words:
        millions, unread = words.split("ล้าน")
        total = 1_000_000 * read(millions)
    for digit, place in re.findall(f"({'|'.join(DIGITS)})?({'|'.join(PLACES)})?", unread):
        total += DIGITS.get(digit, 1 if place else 0) * PLACES.get(place, 1)
    return total


@given(st.integers(1, money.MAX_AMOUNT))
def test_thai_words_are_read_back_as_the_amount(satang: int) -> None:
    *baht, rest = in_thai(satang).replace("สตางค์", "").split("บาท")
    whole = read(baht[0]) if baht else 0
    assert 100 * whole + (read(rest) if rest else 0) == satang


@given(st.integers(1, money.MAX_AMOUNT), st.integers(1, money.MAX_AMOUNT))
def test_two_amounts_never_sound_alike(first: int, second: int) -> None:
    assert (in_english(first) == in_english(second)) is (first == second)
