"""Say what is wrong with the text of a payment code, in plain words and with the place.

Sources: EMVCo QR Code Specification for Payment Systems, Merchant-Presented Mode; Bank of Thailand,
"Standardized Thai QR Code for Payment Transactions", April 2019.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from thaiqr.lint_fields import ADDITIONAL, BARCODE, NAMES, RULES, SCHEMES, THAI_AID, THAI_RULES, Rule

MAX_LENGTH = 512
HEAD = 4
CHECKSUM_LENGTH = 8


class Level(StrEnum):
    """How bad a finding is."""

    ERROR = "error"  # apps refuse the code, or pay something else
    WARNING = "warning"  # some apps refuse it, or it is not what a bank issues
    NOTE = "note"


class Kind(StrEnum):
    """What a text is."""

    TRANSFER = "PromptPay transfer (tag 29)"
    BILL = "Thai bill payment (tag 30)"
    INNOVATION = "Thai payment innovation (tag 31)"
    FOREIGN = "payment code of another scheme"
    SLIP = "code of a slip: it proves a transfer and cannot be paid"
    BARCODE = "Thai bill payment barcode"
    CUSTOMER = "code that a customer shows (EMV customer-presented)"
    OTHER = "no payment code"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault. tag: such as "54" or "29.01". position: of its first character, from 0."""

    level: Level
    message: str
    tag: str | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Element:
    """One field of a code. tag: its path. position: of its tag in the text. A template has no value."""

    tag: str
    name: str
    value: str
    position: int
    is_template: bool = False


@dataclass
class Report:
    """What a text is, its fields in order, and its faults."""

    text: str
    kind: Kind = Kind.OTHER
    elements: list[Element] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def is_valid(self) -> bool:
        """Whether there is no error. Warnings do not count."""
        return not any(each.level is Level.ERROR for each in self.findings)

    def add(self, level: Level, message: str, tag: str | None = None) -> None:
        """Add a finding about a tag, at the place of that tag."""
        position = next((each.position for each in self.elements if each.tag == tag), None)
        self.findings.append(Finding(level, message, tag, position))

    def at(self, position: int, message: str, tag: str | None = None, level: Level = Level.ERROR) -> None:
        """Add a finding at a place."""
        self.findings.append(Finding(level, message, tag, position))

    def values(self) -> dict[str, str]:
        """The value of each path. Of a repeated tag the first."""
        found: dict[str, str] = {}
        for each in self.elements:
            found.setdefault(each.tag, each.value)
        return found


def lint(text: str) -> Report:
    """Read a payment code of any kind. It never raises; everything that is wrong is a finding."""
    clean = text.strip("\r\n\t \ufeff")
    report = Report(clean)
    if clean != text.rstrip("\r\n"):
        report.add(
            Level.WARNING, "There is space around the code. It was ignored here; scanners may refuse it."
        )
    read = next(read for begins, read in READERS if begins(clean))
    read(report)
    report.findings.sort(key=lambda each: (list(Level).index(each.level), each.position or 0))
    return report


def _read_other(report: Report) -> None:
    report.kind = Kind.OTHER
    text = report.text
    if not text:
        report.add(Level.ERROR, "The text is empty.")
    elif "://" in text[:16]:
        report.add(Level.ERROR, "This is a web address, not a payment code.")
    else:
        report.at(0, f"A payment code begins with 000201. This text begins with {text[:6]!r}.")


def _read_customer(report: Report) -> None:
    report.kind = Kind.CUSTOMER
    report.add(
        Level.NOTE, "A shop scans this code from the customer's phone. Its fields are not checked here."
    )


def _is_customer(text: str) -> bool:
    try:
        return base64.b64decode(text, validate=True)[2:7] == b"CPV01"
    except (binascii.Error, ValueError):
        return False


def _read_barcode(report: Report) -> None:
    """`|biller CR ref1 CR ref2 CR satang`. Source: Bank of Thailand, bill payment barcode."""
    report.kind = Kind.BARCODE
    parts = report.text[1:].replace("\r\n", "\r").replace("\n", "\r").split("\r")
    if len(parts) != len(BARCODE):
        lines = "biller, reference 1, reference 2, amount"
        report.at(0, f"A barcode has 4 lines ({lines}), divided by CR. This one has {len(parts)}.")
        return
    position = 1
    for value, (line, name) in zip(parts, BARCODE.items(), strict=True):
        report.elements.append(Element(line, name, value, position))
        _check(report, line, value, RULES[line])
        position += len(value) + 1


def _read_fields(report: Report) -> None:
    unprintable = next((at for at, each in enumerate(report.text) if not each.isprintable()), None)
    if unprintable is not None:
        report.at(unprintable, f"There is an unprintable character ({report.text[unprintable]!r}).")
    if len(report.text) > MAX_LENGTH:
        report.add(
            Level.ERROR, f"The code has {len(report.text)} characters. At most {MAX_LENGTH} are allowed."
        )
    is_whole = _split(report, 0, len(report.text), "", _is_template)
    values = report.values()
    report.kind = _kind(values)
    is_foreign = report.kind is Kind.FOREIGN
    if is_whole:
        _check_order(report)
        for level, message, tag in _relations(values, report.kind):
            report.add(level, message, tag)
        for tag, value in values.items():
            rules = RULES.get(tag, ADDITIONAL if tag.startswith("62.") else [])
            _check(report, tag, value, rules if is_foreign else [*rules, *THAI_RULES.get(tag, [])])
            if not value.isascii() and tag != "64" and "." not in tag:
                report.add(
                    Level.ERROR,
                    f"Tag {tag} has characters beyond ASCII. A Thai name belongs into tag 64.",
                    tag,
                )
    _check_checksum(report, "63", is_whole)


def _read_slip(report: Report) -> None:
    """The code on a slip: tag 00 with bank and reference of the transfer, and its checksum in tag 91."""
    report.kind = Kind.SLIP
    is_whole = _split(report, 0, len(report.text), "", lambda tag: tag == "00")
    _check_checksum(report, "91", is_whole)


def _is_slip(text: str) -> bool:
    return _is_fields(text) and text.startswith("00") and text[HEAD : HEAD + 2] == "00"


def _is_fields(text: str) -> bool:
    return len(text) > HEAD and _is_head(text[:HEAD])


def _is_template(tag: str) -> bool:
    """Whether a field holds fields. Accounts up to 25 are plain numbers of card schemes."""
    return "26" <= tag <= "51" or tag in {"62", "64", "80"}


def _kind(values: Mapping[str, str]) -> Kind:
    thai = {"30": Kind.BILL, "29": Kind.TRANSFER, "31": Kind.INNOVATION}
    for tag, kind in thai.items():
        if values.get(f"{tag}.00", "").startswith(THAI_AID):
            return kind
    if values.get("58", "TH") == "TH" and values.get("53", "764") == "764":
        return next((kind for tag, kind in thai.items() if tag in values and tag != "31"), Kind.FOREIGN)
    return Kind.FOREIGN


def _check(report: Report, tag: str, value: str, rules: list[Rule]) -> None:
    """Tell the first rule that the value breaks."""
    for level, pattern, message in rules:
        if not re.fullmatch(pattern, value, re.ASCII | re.DOTALL):
            report.add(Level(level), message.format(value=value, size=len(value)), tag)
            return
    if rules and tag == "29.02" and not has_check_digit(value):
        report.add(Level.WARNING, f"The check digit of the id {value} is wrong. Is it mistyped?", tag)


def _relations(values: Mapping[str, str], kind: Kind) -> Iterator[tuple[Level, str, str | None]]:
    """What is missing, and what does not go together."""
    for tag, of, name in (
        ("53", None, "Tag 53 (currency) is missing: 5303764 for baht."),
        ("58", None, "Tag 58 (country) is missing: 5802TH for Thailand."),
        ("29.00", "29", "Tag 29 needs its application id (29.00): A000000677010111."),
        ("30.00", "30", "Tag 30 needs its application id (30.00): A000000677010112."),
        ("30.01", "30", "Tag 30 needs the biller id (30.01)."),
        ("30.02", "30", "Tag 30 needs reference 1 (30.02)."),
        ("31.00", "31", "Tag 31 needs its application id (31.00): A000000677010113."),
    ):
        if tag not in values and (of is None or (of in values and kind is not Kind.FOREIGN)):
            yield Level.ERROR, name, of
    if values.get("01") == "12" and "54" not in values:
        yield Level.WARNING, "The code is for one payment (12), but has no amount. The payer types it.", "01"
    if values.get("01") == "11" and "54" in values:
        text = "The code is for many payments (11) and fixes the amount. Some apps let the payer change it."
        yield Level.NOTE, text, "01"
    if kind is Kind.FOREIGN:
        where = f"country {values.get('58', 'missing')}, currency {values.get('53', 'missing')}"
        yield Level.WARNING, f"This is no Thai code: {_scheme(values)}, {where}.", None
    elif "29" in values:
        payees = [tag for tag in ("29.01", "29.02", "29.03", "29.04") if tag in values]
        if len(payees) != 1:
            said = "nobody" if not payees else "several: " + ", ".join(payees)
            text = "Tag 29 must name one payee (01 phone, 02 id, 03 wallet or 04 account)."
            yield Level.ERROR, f"{text} It names {said}.", "29"
        if values.get("29.00", "").endswith("0114") and "29.05" not in values:
            yield Level.ERROR, "A code that a customer shows needs a one-time code (29.05).", "29"


def _scheme(values: Mapping[str, str]) -> str:
    """The foreign scheme of a code, as far as it is known."""
    for tag, value in values.items():
        for mark, name in SCHEMES.items():
            if tag == mark or (tag.endswith(".00") and len(mark) > 2 and value.upper().startswith(mark)):
                return name
    return "an unknown scheme"


def _split(report: Report, start: int, end: int, within: str, is_template: Callable[[str], bool]) -> bool:
    """Add the fields between two places. Returns whether all could be read; only the first fault is told."""
    seen: set[str] = set()
    at, text, is_whole = start, report.text, True
    while at < end:
        head = text[at : min(at + HEAD, end)]
        fault = _fault(text, at, end, within)
        if fault:
            if is_whole:
                report.at(at, fault, within + head[:2] if _is_head(head) else within[:-1] or None)
            return False
        tag, size = within + head[:2], int(head[2:])
        if tag in seen:
            report.at(at, f"Tag {tag} appears twice.", tag)
        seen.add(tag)
        value, inner, opened = text[at + HEAD : at + HEAD + size], at + HEAD, is_template(tag)
        is_account = "02" <= tag[:2] <= "51"
        name = NAMES.get(tag, "Account of a scheme" if is_account else "Unknown field")
        report.elements.append(Element(tag, name, value, at, opened))
        if opened:
            is_whole &= _split(report, inner, inner + size, f"{tag}.", lambda _: False)
        at = inner + size
    return is_whole


def _fault(text: str, at: int, end: int, within: str) -> str:
    """What keeps the field at a place from being read; empty if nothing does."""
    head = text[at : min(at + HEAD, end)]
    if not _is_head(head):
        where = f"Within tag {within[:-1]}, two" if within else "Two"
        return (
            f"{where} digits of tag and two digits of length should stand here, not {head!r}. Probably the "
            "length of the field before it is wrong, or characters were lost."
        )
    tag, size, left = within + head[:2], int(head[2:]), end - at - HEAD
    if size == 0:
        return f"Tag {tag} is empty."
    if left < size:
        follow = f"{left} are left in tag {within[:-1]}" if within else f"{left} do"
        return (
            f"Tag {tag} says that {size} characters follow, but only {follow}. A length is wrong, or the "
            "code was cut off."
        )
    return ""


def _is_head(head: str) -> bool:
    return len(head) == HEAD and head.isascii() and head.isdigit()


def _check_order(report: Report) -> None:
    tags = [each.tag for each in report.elements if "." not in each.tag]
    if tags[:1] != ["00"]:
        report.at(0, "The code must begin with tag 00 (000201).", "00")
    if "01" in tags and tags[1:2] != ["01"]:
        report.add(Level.ERROR, "Tag 01 must be the second field.", "01")
    if "63" in tags[:-1]:
        report.add(Level.ERROR, "The checksum (tag 63) must be the last field.", "63")
    if not any("02" <= tag <= "51" for tag in tags):
        report.add(Level.ERROR, "Nobody to pay is named: there is no tag from 02 to 51.")
    rest = [tag for tag in tags if tag not in {"00", "01", "63"}]
    if rest != sorted(rest):
        report.add(
            Level.NOTE, "The tags are not in ascending order. That is allowed, but banks issue them so."
        )


def _check_checksum(report: Report, tag: str, is_whole: bool) -> None:
    """Compare the checksum. If it is wrong, say what it should be, and which mistake gives this value."""
    text, head = report.text, f"{tag}04"
    if text[-CHECKSUM_LENGTH:-HEAD] != head:
        if is_whole and tag not in report.values():
            right = crc16(f"{text}{head}")
            report.at(len(text), f"The checksum is missing. The code should end with {head}{right}.", tag)
        elif is_whole:
            must = f"The checksum (tag {tag}) must have 4 characters and be the last field."
            report.add(Level.ERROR, must, tag)
        return
    given, right, position = text[-HEAD:], crc16(text[:-HEAD]), len(text) - CHECKSUM_LENGTH
    if given.upper() == right != given:
        level = Level.NOTE if tag == "91" else Level.WARNING
        report.at(position, f"The checksum {given} has lower-case letters; {right} is usual.", tag, level)
    elif given != right:
        mistakes = {
            crc16(
                text[:-CHECKSUM_LENGTH]
            ): "It was computed without the tag and length of the checksum itself.",
            crc16(text[:-HEAD], start=0): "It was computed as CRC-16/XMODEM (it must start with FFFF).",
            right[2:] + right[:2]: "Its two bytes are swapped.",
        }
        mistake = mistakes.get(given.upper(), "The code was changed after it was made, or mistyped.")
        report.at(position, f"The checksum is {given}, but must be {right}. {mistake}", tag)


def crc16(data: str, *, start: int = 0xFFFF) -> str:
    """CRC-16/CCITT-FALSE in upper-case hex: "123456789" gives "29B1"."""
    return f"{binascii.crc_hqx(data.encode(errors='surrogatepass'), start):04X}"


def has_check_digit(value: str) -> bool:
    """Whether the last of 13 digits of a Thai id is the check digit of the others."""
    total = sum(int(digit) * (13 - place) for place, digit in enumerate(value[:12]))
    return (11 - total % 11) % 10 == int(value[12])


READERS: list[tuple[Callable[[str], bool], Callable[[Report], None]]] = [
    (lambda text: text.startswith("|"), _read_barcode),
    (_is_customer, _read_customer),
    (_is_slip, _read_slip),
    (_is_fields, _read_fields),
    (lambda _: True, _read_other),
]
