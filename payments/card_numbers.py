"""Card numbers, so that none is taken for a token: the acquirer makes tokens, and we never see a number."""

import re

_DIGITS = re.compile("[0-9]{13,19}")


def looks_like_one(text: str) -> bool:
    """Whether `text` is 13 to 19 digits, however grouped, with the right check digit (Luhn)."""
    digits = text.replace("-", "").replace("_", "")
    return _DIGITS.fullmatch(digits) is not None and _sum(digits) % 10 == 0


def _sum(digits: str) -> int:
    doubled = (2 * int(digit) for digit in digits[-2::-2])
    return sum(int(digit) for digit in digits[::-2]) + sum(double // 10 + double % 10 for double in doubled)
