"""Texts that people write: invisible characters, blanks, Thai spellings, digits, dashes and titles."""

import pytest
from hypothesis import given, strategies as st

from core import plain_text

SARA_AM, TWO_LETTERS = "\u0e33", "\u0e4d\u0e32"
INVISIBLE = "\u200b\u200c\u200d\u200e\u2060\ufeff\xad\u034f\u3164\ufe0f\u2800\U000e0020"


def test_character_that_nobody_sees_is_dropped() -> None:
    for character in INVISIBLE:
        given = f"{character}สม{character}ชาย {character} ใจดี {character}"
        assert plain_text.visible(given) == "สมชาย  ใจดี"
        assert plain_text.name(given) == "สมชาย ใจดี"


@pytest.mark.parametrize("emoji", ["👨\u200d👩\u200d👧", "❤\ufe0f", "👁\ufe0f\u200d🗨\ufe0f", "👨🏽\u200d💻"])
def test_character_that_makes_an_emoji_stays(emoji: str) -> None:
    assert plain_text.visible(f"\u200d{emoji}\u200d") == emoji
    assert plain_text.name(f"A {emoji}") == f"A {emoji}"


@pytest.mark.parametrize("blank", " \xa0\u2003\u202f\u3000")
def test_several_blanks_of_a_name_are_one(blank: str) -> None:
    assert plain_text.name(f"{blank}Somchai {blank}{blank}Jaidee{blank}") == "Somchai Jaidee"


def test_control_characters_stay_for_the_rule_that_refuses_them() -> None:
    assert plain_text.name("Somchai\nJaidee\x1b") == "Somchai\nJaidee\x1b"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (f"อ{TWO_LETTERS}นวย", "อำนวย"),
        ("น\u0e49\u0e4d\u0e32ฝน", f"น\u0e49{SARA_AM}ฝน"),
        ("น\u0e4d\u0e49\u0e32ฝน", f"น\u0e49{SARA_AM}ฝน"),
        ("\u0e40\u0e40ก้ว", "แก้ว"),
        ("Rene\u0301", "René"),
        ("อำนวย", "อำนวย"),
    ],
)
def test_letters_that_look_alike_have_one_spelling(written: str, name: str) -> None:
    assert plain_text.name(written) == name


def test_search_has_the_usual_digits_and_dash() -> None:
    for dash in plain_text.DASHES:
        assert plain_text.folded(f" ๔๐๕{dash}๑ ") == "405-1"
    assert plain_text.spellings("๔๐๕\u2013๑\u200b") == ["๔๐๕\u2013๑\u200b", "๔๐๕\u2013๑", "405-1"]
    assert plain_text.spellings("405-1") == ["405-1"]


def test_account_has_neither_blanks_nor_dashes() -> None:
    assert plain_text.compact("\ufeff๔๐๕ - 1\u201123456\xa07\u200b") == "4051234567"


@pytest.mark.parametrize(
    "written",
    [
        *("สมชาย ใจดี", "นายสมชาย ใจดี", "นาย  สมชาย ใจดี", "น.ส. สมชาย ใจดี", "นางสาวสมชาย ใจดี"),
        *("คุณสมชาย\u200b ใจดี", "\ufeffนางสมชาย ใจดี"),
    ],
)
def test_person_is_the_same_with_and_without_a_title(written: str) -> None:
    assert plain_text.person(written) == "สมชาย ใจดี"


def test_person_is_the_same_in_capitals_and_with_an_english_title() -> None:
    for written in ("SOMCHAI JAIDEE", "Mr. Somchai Jaidee", "mr.somchai jaidee", "Miss Somchai  Jaidee"):
        assert plain_text.person(written) == "somchai jaidee"
    assert plain_text.person("Mrinal Missara") == "mrinal missara"
    assert plain_text.person("นาย") == "นาย"


@given(st.text())
def test_plain_text_stays_as_it_is(text: str) -> None:
    for plain in (plain_text.visible, plain_text.folded, plain_text.compact):
        assert plain(plain(text)) == plain(text)
