"""Whether two names are of the same person or company, however banks and people write them.

Banks cut names, add titles or leave them out, and write Thai names in Latin letters in no fixed way. Names of
one script are compared as they are written. Otherwise sounds are compared: consonants count, vowels little.
"""

import re
from collections.abc import Sequence
from itertools import permutations
from typing import Literal

from core import plain_text

Match = Literal["yes", "no", "unknown"]
_OTHER_HOLDER = re.compile(r" (?:and|or) | *[&/] *| *(?:และ|หรือ) *(?=นาย|นาง|น\.ส|ด\.[ชญ]|คุณ)")
_COMPANY = re.compile(
    r"บริษัท|บจก\.?|บมจ\.?|หจก\.?|ห้างหุ้นส่วน|จำกัด|\(มห[\u0e00-\u0e7f]*\)?"
    r"|\bco\.?, ?l?t?d?\.?$|\b(?:public|company|limited|partnership|co|ltd|plc|pcl|part|inc|corp)\b"
)
_TITLE = re.compile(
    r"^ *(?:นางสาว|นาย|นาง|น\.?ส\.|คุณ|เด็กชาย|เด็กหญิง|ด\.[ชญ]\.|ดร\.|ผศ\.|รศ\.|นพ\.|พญ\.|ว่าที่|ร้อย(?:ตรี|โท|เอก)"
    r"|พันตำรวจ(?:ตรี|โท|เอก)|[พร]\.(?:[ตทอ]\.){1,2}|mrs?|ms|miss|khun|dr)(?![a-z\u0e30-\u0e3a\u0e45-\u0e4e])"
    r"|[ .](?:mrs?|ms|miss|dr)\.? *$"
)
_WORD = re.compile("[a-z]+|[\u0e00-\u0e7f]+")
# Thai as Latin letters: vowels behind their consonant, silent letters and tones left out.
_THAI_SPELLING = [
    (re.compile("[\u0e47-\u0e4b\u0e4d\u0e4e]"), ""),
    (re.compile("(?<=น)[ทตด]ร์|(?<=ต)ร์|(?<=ก)ษณ์|[ก-ฮ][ิุ]?์|ร(?=[ตฐ]ิ$|ิ[ตฐ]$)|(?<=ต)ิ$"), ""),
    (re.compile("ห(?=[งญนมยรลว])|(?<=[ศส])ร(?=ี)"), ""),
    (re.compile("^ทร(?=[ะ-ู]|[ก-ฮ])"), "ซ"),
    (re.compile("รร(?=[ก-ฮ])"), "า"),
    (re.compile("รร(?![ะ-ู])"), "าน"),
    (re.compile("ำ"), "าม"),
    (re.compile("([เแโไใ])([กขคตทปผพบ][รลว]|[ก-ฮ])"), r"\2\1"),
    (re.compile("เีย"), "ีา"),
    (re.compile("เือ"), "ูา"),
    (re.compile("[ไใ]"), "าย"),
]
_THAI_LETTERS = str.maketrans(
    "กขฃคฅฆงจชฌฉซสศษดฎตฏทธถฐฑฒนณบปพผภฟฝมยญรลฬวหฮอฤะัาิีึืุูเแโๅ",
    "kkkkkkGccccssssttttttttttnnpppppffmyyrllwhhoraaaiiuuuueeoa",
)
_LATIN_SPELLING = [
    (re.compile("ng"), "G"),
    (re.compile("ee"), "i"),
    (re.compile("oo"), "u"),
    (re.compile("(?<=[kgpbtd])h"), ""),
    (re.compile("[td]?(?:[cs]h|j|zh)|c(?=[eiy])"), "c"),
    (re.compile("ck|x"), "k"),
    (re.compile("ts|sr"), "s"),
    (re.compile("(?<=[aeo])r(?![aeiouyw])"), ""),
]
_LATIN_LETTERS = str.maketrans("bdgqvz", "ptkkws")
_VOWELS, _WEAK = set("aiueo"), set("hwy")
# Letters that stand for the same Thai one at the end of a syllable.
_ALIKE_AT_END = {frozenset(pair) for pair in ("rn", "ln", "rl", "st", "ct", "cs", "yn", "fp")}
_UNLIKE_VOWELS = {frozenset("ai"), frozenset("iu")}
MAX_SOUNDS = 30  # the work grows with their square
MAX_HOLDERS = 3
SAME, SIMILAR = 0.28, 0.3
"""Costs for each consonant: up to SAME it is one name in two spellings, up to SIMILAR perhaps."""


def compare(expected: str, reported: str) -> Match:
    """`unknown` if a name is missing, or too short to decide."""
    if expected and plain_text.person(expected) == plain_text.person(reported):
        return "yes"
    holders = _OTHER_HOLDER.split(plain_text.folded(reported).lower(), MAX_HOLDERS)
    found = [_compare(plain_text.folded(expected).lower(), holder) for holder in holders]
    return "yes" if "yes" in found else "no" if set(found) == {"no"} else "unknown"


def _compare(expected: str, reported: str) -> Match:
    one, is_person, is_company = _read(expected)
    other, is_other_person, is_other_company = _read(reported)
    if (is_person and is_other_company) or (is_company and is_other_person):
        return "no"
    if not one or not other:
        return "unknown"
    orders = permutations(other) if len(other) <= 2 else [other, (other[-1], *other[:-1])]
    found = [_of_words(one, order, is_company=is_company or is_other_company) for order in orders]
    return next((each for each in ("yes", "unknown") if each in found), "no")


def _read(name: str) -> tuple[list[str], bool, bool]:
    """The words of a name, and whether it has the title of a person, or words of a company."""
    plain, companies = _COMPANY.subn(" ", name)
    without = plain
    while (shorter := _TITLE.sub(" ", without, count=1).lstrip(". ")) != without.lstrip(". "):
        without = shorter
    return _WORD.findall(without), without.strip(". ") != plain.strip(". "), bool(companies)


def _of_words(one: Sequence[str], other: Sequence[str], *, is_company: bool) -> Match:
    """Compare given name and the rest. `other` may be cut at its end."""
    if list(one) == list(other):
        return "yes"
    if is_company or (len(one) == 1) != (len(other) == 1):
        whole = _likeness("".join(one), "".join(other), may_be_cut=is_company)
        if whole == "yes" or is_company:
            return whole
    given, rest = _likeness(one[0], other[0]), ("".join(one[1:]), "".join(other[1:]))
    if not rest[0] or not rest[1]:
        return "no" if given == "no" else "unknown"
    found = {_likeness(*rest, may_be_cut=True), _likeness(one[-1], other[-1])}
    family = "yes" if "yes" in found else "unknown" if "unknown" in found else "no"
    if _is_initial(other[0]):
        given = "unknown" if _likeness(one[0], other[0], may_be_cut=True) == "yes" else "no"
    if "no" in (given, family):
        return "no"
    return "yes" if given == family == "yes" else "unknown"


def _is_initial(word: str) -> bool:
    return len(word.strip("เแโไใ")) <= 1


def _likeness(one: str, other: str, *, may_be_cut: bool = False) -> Match:
    """Whether two words are the same name: `unknown` if they are only similar."""
    if one == other or (may_be_cut and one.startswith(other)):
        return "yes"
    if not one.isascii() and not other.isascii():
        return "no"
    one, other = _sounds(one)[:MAX_SOUNDS], _sounds(other)[:MAX_SOUNDS]
    cost = _cost_of_change(one, other, may_be_cut=may_be_cut)
    consonants = [sum(each not in _VOWELS | _WEAK for each in word) for word in (one, other)]
    share = cost / max(1, consonants[1] if may_be_cut else max(consonants))
    return "yes" if cost < 1 and share <= SAME else "unknown" if share <= SIMILAR else "no"


def _cost_of_change(one: str, other: str, *, may_be_cut: bool) -> float:
    """The least cost to make the sounds of `other` of `one`, or of its beginning."""
    costs = [0.0]
    for letter in one:
        costs.append(costs[-1] + _cost(letter))
    for row, letter in enumerate(other):
        above, costs = costs, [costs[0] + _cost(letter)]
        for place, own in enumerate(one):
            is_end = not {*one[place + 1 : place + 2], *other[row + 1 : row + 2]} & _VOWELS
            change = above[place] + _change(own, letter, is_end=is_end)
            costs.append(min(change, above[place + 1] + _cost(letter), costs[-1] + _cost(own)))
    return min(costs) if may_be_cut else costs[-1]


def _sounds(word: str) -> str:
    spelling, letters = (
        (_LATIN_SPELLING, _LATIN_LETTERS) if word.isascii() else (_THAI_SPELLING, _THAI_LETTERS)
    )
    for pattern, becomes in spelling:
        word = pattern.sub(becomes, word)
    return re.sub(r"(.)\1+", r"\1", word.translate(letters))


def _cost(letter: str) -> float:
    return 0.15 if letter in _VOWELS else 0.25 if letter in _WEAK else 1.0


def _change(own: str, other: str, *, is_end: bool) -> float:
    pair = frozenset((own, other))
    if own == other:
        return 0.0
    if pair <= _VOWELS | _WEAK:
        return 0.5 if pair in _UNLIKE_VOWELS else 0.2
    return 0.3 if is_end and pair in _ALIKE_AT_END else 1.0
