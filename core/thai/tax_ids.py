"""Tax ids of the Revenue Department: 13 digits, of companies and persons. The last one checks the others."""

import re

HEAD_OFFICE = "00000"
BRANCH = r"[0-9]{5}"
"""The number of a branch. The head office is 00000."""


def is_valid(text: str) -> bool:
    """Whether these are 13 digits and the last one is the check digit (weights 13 to 2, modulo 11)."""
    if not re.fullmatch(r"[0-9]{13}", text):
        return False
    weighted = sum(int(digit) * weight for digit, weight in zip(text, range(13, 1, -1), strict=False))
    return int(text[-1]) == (11 - weighted % 11) % 10
