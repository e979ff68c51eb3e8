"""Banks in Thailand to which money can be sent, and the lengths of their account numbers.

`thaibanks.csv` lists them. Codes are the Bank of Thailand's, short names those that banks and gateways use.
005 (Royal Bank of Scotland) and 065 (Thanachart, merged into ttb) are left out, because they have no
accounts any more; one gateway uses 076 for ttb since the merger.
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from django.utils import translation
from django.utils.translation import gettext as _

MIN_DIGITS, MAX_DIGITS = 10, 15
_DIGITS = re.compile(rf"[0-9]{{{MIN_DIGITS},{MAX_DIGITS}}}")


@dataclass(frozen=True, slots=True)
class Bank:
    """`name_th` is the Thai name. `digits`: the lengths of an account number, shortest and longest."""

    code: str
    alias: str
    name: str
    name_th: str
    digits: tuple[int, int]

    @property
    def local_name(self) -> str:
        return self.name_th if translation.get_language() == "th" else self.name


BANKS: list[Bank] = []
_BY_NAME: dict[str, Bank] = {}
with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as _file:
    for _row in csv.DictReader(_file):
        _digits = int(_row["shortest"]), int(_row["longest"])
        BANKS.append(Bank(_row["code"], _row["alias"], _row["name"], _row["name_th"], _digits))
        _names = [_row["code"], _row["alias"], *_row["other_names"].split()]
        _BY_NAME |= dict.fromkeys(_names, BANKS[-1])


def choices() -> list[tuple[str, str]]:
    """Codes and names for a form, in the language of the reader."""
    return [("", _("Choose a bank")), *((bank.code, bank.local_name) for bank in BANKS)]


def find(code_or_alias: str) -> Bank | None:
    """The bank of a 3-digit code or a short name in any case; None if there is none."""
    # Some letters of other scripts become one of ours in lower case.
    return _BY_NAME.get(code_or_alias.lower()) if code_or_alias.isascii() else None


def label(code: str) -> str:
    """ "014 Siam Commercial Bank", or only the code of an unknown bank."""
    bank = find(code)
    return f"{code} {bank.name}" if bank else code


def check_account(code: str, account: str) -> None:
    """Check an account number at the bank `code` (or alias). Raises ValueError without the number."""
    bank = find(code)
    if bank is None:
        raise ValueError("this bank does not exist")
    shortest, longest = bank.digits
    if not _DIGITS.fullmatch(account) or not shortest <= len(account) <= longest:
        length = str(shortest) if shortest == longest else f"{shortest}-{longest}"
        text = _("an account at %(bank)s has %(length)s digits")
        raise ValueError(text % {"bank": bank.local_name, "length": length})
