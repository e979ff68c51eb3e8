"""Amounts as integer satang, and as text in baht (100 satang)."""

import re
from decimal import Decimal
from functools import lru_cache

from django.utils.translation import gettext as _

from core import plain_text

CURRENCY = "THB"
MIN_AMOUNT = 100
"""Smallest payment, in satang: 1 THB."""
MAX_AMOUNT = 200_000_000
"""Largest payment, in satang: 2,000,000 THB, the cap of a PromptPay transfer."""

_BAHT = re.compile(r"(0|[1-9][0-9]*)(?:\.([0-9]{2}))?")
# Commas stand between thousands only: "1,5" and "1.500,00" are written by another rule.
_WRITTEN = re.compile(r"([0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(\.[0-9]{1,2})?")


def baht(satang: int) -> str:
    """Baht with two decimals, as banks write it: 150000 satang is "1500.00"."""
    return f"{decimal(satang):.2f}"


def decimal(satang: int) -> Decimal:
    """Baht as a number of a spreadsheet, exact to the satang."""
    return Decimal(satang).scaleb(-2)


def satang(text: str) -> int:
    """Satang of "1500.00" or "1500".

    One decimal, a sign, spaces, separators, leading zeros and digits of other scripts raise ValueError.
    """
    match = _BAHT.fullmatch(text)
    if not match:
        raise ValueError("an amount in baht is digits with two decimals or none")
    whole, rest = match.groups()
    return int(whole) * 100 + int(rest or 0)


def display(satang: int) -> str:
    """An amount as staff read it: 150000 satang is "1,500.00 THB", and "1,500.00 บาท" in Thai."""
    return _("%(baht)s THB") % {"baht": f"{decimal(satang):,.2f}"}


@lru_cache(maxsize=1024)  # an answer and its event show the same amount
def with_code(satang: int) -> str:
    """An amount in answers and files, the same in all languages: 150000 satang is "1,500.00 THB"."""
    return f"{decimal(satang):,.2f} {CURRENCY}"


def with_sign(satang: int) -> str:
    """An amount as payers read it: 150000 satang is "฿1,500.00"."""
    return f"฿{decimal(satang):,.2f}"


def parse(text: str) -> int | None:
    """Satang of what a person wrote, such as "1,500" or "1500.5 THB". None if it is not clear."""
    number = plain_text.folded(text).strip().upper().removeprefix("฿")
    written = _WRITTEN.fullmatch(number.removesuffix(CURRENCY).removesuffix("บาท").strip())
    if written is None:
        return None
    whole, decimals = written[1].replace(",", ""), written[2] or ".00"
    try:
        return satang(f"{whole}{decimals:0<3}")
    except ValueError:
        return None
