"""An amount in words, to be said aloud: 10025 satang is หนึ่งร้อยบาทยี่สิบห้าสตางค์.

By the rule of the Royal Society of Thailand a last 1 is เอ็ด after any other digit: 101 is หนึ่งร้อยเอ็ด.
"""

from collections.abc import Callable

MILLION, SATANG_PER_BAHT = 1_000_000, 100
THAI_DIGITS = ["", "หนึ่ง", "สอง", "สาม", "สี่", "ห้า", "หก", "เจ็ด", "แปด", "เก้า"]
THAI_PLACES = ["", "สิบ", "ร้อย", "พัน", "หมื่น", "แสน"]
SMALL = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
]
TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
SCALES = [(MILLION, "million"), (1000, "thousand"), (100, "hundred")]


def in_thai(satang: int) -> str:
    """Words without spaces, as Thai is written."""
    return "".join(_parts(satang, _thai, "บาท", "สตางค์"))


def in_english(satang: int) -> str:
    return " and ".join(_parts(satang, _english, " baht", " satang"))


IN_WORDS: dict[str, Callable[[int], str]] = {"th": in_thai, "en": in_english}
"""By the language."""


def _parts(satang: int, number: Callable[[int], str], *units: str) -> list[str]:
    """Baht and satang, each with its unit; without the one that is zero, unless both are."""
    amounts = zip(divmod(satang, SATANG_PER_BAHT), units, strict=True)
    counted = [(count, unit) for count, unit in amounts if count]
    return [f"{number(count)}{unit}" for count, unit in counted or [(0, units[0])]]


def _thai(number: int) -> str:
    if number == 0:
        return "ศูนย์"
    millions, rest = divmod(number, MILLION)
    words = f"{_thai(millions)}ล้าน" if millions else ""
    for place in range(len(THAI_PLACES) - 1, -1, -1):
        digit = rest // 10**place % 10
        if place == 1 and digit in (1, 2):
            words += ("", "สิบ", "ยี่สิบ")[digit]
        elif place == 0 and digit == 1 and number > 1:
            words += "เอ็ด"
        elif digit:
            words += THAI_DIGITS[digit] + THAI_PLACES[place]
    return words


def _english(number: int) -> str:
    for size, name in SCALES:
        if number >= size:
            count, rest = divmod(number, size)
            return f"{_english(count)} {name}" + (f" {_english(rest)}" if rest else "")
    if number < len(SMALL):
        return SMALL[number]
    tens, ones = divmod(number, 10)
    return TENS[tens] + (f"-{SMALL[ones]}" if ones else "")
