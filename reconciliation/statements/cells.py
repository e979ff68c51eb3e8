"""Values of cells as people and programs write them. What could mean two things is refused, never guessed.

Every function raises UnreadableMessage. Times are those of Bangkok.
"""

import re
from datetime import datetime

from banks.base import TransactionKind, UnreadableMessage
from core import money, plain_text
from ledger.services import Fee
from reconciliation.statements.lines import parse_bangkok_time, parse_pattern, parse_text

KINDS: dict[str, TransactionKind] = {
    "credit": "credit", "cr": "credit", "เครดิต": "credit",
    "debit": "reversal", "dr": "reversal", "เดบิต": "reversal",
}  # fmt: skip
"""Not `C` and `D`: a file may mean a deposit by `D`."""
MAX_QUOTED = 30
LENGTHS_WITHOUT_ZERO = {12: 13, 14: 15}
_MONTHS = (
    ("jan", "january", "ม.ค.", "มกราคม"), ("feb", "february", "ก.พ.", "กุมภาพันธ์"),
    ("mar", "march", "มี.ค.", "มีนาคม"), ("apr", "april", "เม.ย.", "เมษายน"),
    ("may", "may", "พ.ค.", "พฤษภาคม"), ("jun", "june", "มิ.ย.", "มิถุนายน"),
    ("jul", "july", "ก.ค.", "กรกฎาคม"), ("aug", "august", "ส.ค.", "สิงหาคม"),
    ("sep", "september", "ก.ย.", "กันยายน"), ("oct", "october", "ต.ค.", "ตุลาคม"),
    ("nov", "november", "พ.ย.", "พฤศจิกายน"), ("dec", "december", "ธ.ค.", "ธันวาคม"),
)  # fmt: skip
MONTHS = {name: number for number, names in enumerate(_MONTHS, 1) for name in names}
MAX_LENGTH = 64  # of a date, time or amount
_DATE_AND_TIME = re.compile(r"(.+?)(?:[T ] *(\d{1,2}:.+))?", re.ASCII | re.DOTALL)
_TIME = re.compile(r"(\d{1,2}):(\d{2}):(\d{2})(?: ?([ap]m)| ?น\.)?", re.ASCII | re.IGNORECASE)
_YEAR_FIRST = re.compile(r"(?P<year>\d{4})([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})", re.ASCII)
_DAY_FIRST = re.compile(r"(?P<day>\d{1,2})([-/.])(?P<month>\d{1,2})\2(?P<year>\d{4})", re.ASCII)
_NAMED_MONTH = re.compile(r"(?P<day>\d{1,2})[ -/](?P<name>\D+?)[ -/](?P<year>\d{4})", re.ASCII)
_DECIMAL_COMMA = re.compile(r"\d+,\d{1,2}|\d{1,3}(\.\d{3})+,\d+", re.ASCII)
# A spreadsheet shows long numbers like this, and saves what it shows.
_SHORTENED_NUMBER = re.compile(r"[0-9](\.[0-9]+)?E\+?[0-9]+", re.IGNORECASE)
_EXCEL_TEXT = re.compile(r'="([^"]*)"')


def plain(cell: str) -> str:
    """The text of a cell without blanks around it. Programs write `="007"` to keep zeros in front."""
    text = plain_text.visible(cell).strip(" \t\xa0")
    return match[1] if (match := _EXCEL_TEXT.fullmatch(text)) else text


def is_order_of_numbers(date: str) -> bool:
    """Whether only the order tells which number of a date is the day, as in 7/11/2026."""
    return _day_first(date) is not None


def is_year_first(date: str) -> bool:
    return len(date) <= MAX_LENGTH and _YEAR_FIRST.fullmatch(_split(date)[0]) is not None


def is_month_first(date: str) -> bool:
    """Whether a date can only be month/day/year."""
    found = _day_first(date)
    return found is not None and int(found["day"]) <= 12 < int(found["month"])


def has_decimal_comma(amount: str) -> bool:
    """Whether the comma of an amount can only be the sign before decimals, as in "1.500,00"."""
    return _DECIMAL_COMMA.fullmatch(amount) is not None


def parse_amount(text: str, *, has_decimal_commas: bool = False) -> int:
    """Satang. has_decimal_commas: other amounts of the file are written so, hence "1,500" is not clear."""
    satang = None if has_decimal_commas and "," in text and "." not in text else money.parse(text)
    if satang is None:
        raise UnreadableMessage(f"the amount cannot be {text[:MAX_QUOTED]!r}")
    if not 0 < satang < 10**13:
        raise UnreadableMessage("the amount is zero or too large")
    return satang


def parse_fee(fee: str, vat: str, amount: int, *, has_decimal_commas: bool = False) -> Fee | None:
    """What the bank keeps of `amount` satang, or None if the cells are empty. An empty VAT alone is zero."""
    if not fee and not vat:
        return None
    found = []
    for label, text in (("the fee", fee), ("the VAT of the fee", vat or "0")):
        satang = None if has_decimal_commas and "," in text and "." not in text else money.parse(text)
        if satang is None:
            raise UnreadableMessage(f"{label} cannot be {text[:MAX_QUOTED]!r}")
        found.append(satang)
    if sum(found) > amount:
        raise UnreadableMessage("the fee and its VAT are more than the amount")
    return Fee(found[0], found[1])


def parse_kind(text: str) -> TransactionKind:
    if (kind := KINDS.get(text.lower().rstrip("."))) is None:
        raise UnreadableMessage(f"the type cannot be {text[:MAX_QUOTED]!r}")
    return kind


def parse_biller(text: str) -> str:
    """13 or 15 digits. A spreadsheet that took them for a number has dropped the zero in front."""
    digits = parse_pattern(text, "the biller id", "[0-9]{12,15}")
    return digits.zfill(LENGTHS_WITHOUT_ZERO.get(len(digits), len(digits)))


def parse_bank_code(text: str) -> str:
    """Three digits, or none. A spreadsheet that took them for a number has dropped the zeros in front."""
    digits = parse_pattern(text, "the payer's bank", "[0-9]{0,3}")
    return digits and digits.zfill(3)


def parse_reference1(text: str, *, is_text: bool) -> str:
    """The text. Of a number nobody knows how many zeros it had in front, so it names no payment."""
    if not is_text or _SHORTENED_NUMBER.fullmatch(text):
        raise UnreadableMessage("reference 1 is a number, and may have lost digits: format it as text")
    return parse_text(text, "reference 1", 35)


def parse_paid_at(date: str, time: str) -> datetime:
    """The instant in UTC. Either cell may have both date and time; then the two must agree."""
    day, time_of_day = _split(date)
    other_day, clock = _split(time)
    if not clock:
        other_day, clock = "", other_day
    if other_day and _ymd(other_day) != _ymd(day):
        raise UnreadableMessage("the time is of another day than the date")
    # Programs write a date alone as its midnight.
    digits, digits_of_date = _hms(clock), _hms(time_of_day).replace("000000", "")
    if digits and digits_of_date not in ("", digits):
        raise UnreadableMessage("the date has another time than the time")
    if not (digits or digits_of_date):
        raise UnreadableMessage("the time is missing")
    year, month, number = _ymd(day)
    return parse_bangkok_time(f"{date} {time}".strip(), year, month, number, digits or digits_of_date)


def _split(text: str) -> tuple[str, str]:
    """Date and time of a cell; the second is empty for a cell with one of them."""
    if len(text) > MAX_LENGTH:
        raise UnreadableMessage(f"date or time is longer than {MAX_LENGTH} characters")
    match = _DATE_AND_TIME.fullmatch(plain_text.folded(text))
    return (match[1], match[2] or "") if match else ("", "")


def _ymd(text: str) -> tuple[str, str, str]:
    """Year, month and day as digits."""
    found = _YEAR_FIRST.fullmatch(text) or _DAY_FIRST.fullmatch(text)
    if found is not None:
        return found["year"], found["month"], found["day"]
    named = _NAMED_MONTH.fullmatch(text)
    if named is None or (month := MONTHS.get(named["name"].lower())) is None:
        raise UnreadableMessage(f"the date cannot be {text[:MAX_QUOTED]!r}")
    return named["year"], str(month), named["day"]


def _hms(text: str) -> str:
    """HHMMSS, or nothing for an empty text."""
    if not text:
        return ""
    found = _TIME.fullmatch(text)
    hour = int(found[1]) if found else 99
    if found is not None and found[4]:
        hour = hour % 12 + 12 * (found[4].lower() == "pm") if 1 <= hour <= 12 else 99
    if found is None or hour > 23:
        raise UnreadableMessage(f"the time cannot be {text[:MAX_QUOTED]!r}")
    return f"{hour:02}{found[2]}{found[3]}"


def _day_first(date: str) -> re.Match[str] | None:
    return _DAY_FIRST.fullmatch(_split(date)[0]) if len(date) <= MAX_LENGTH else None
