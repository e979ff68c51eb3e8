"""Say what is wrong with the text of a payment code, in plain words and with the place.

Sources: EMVCo QR Code Specification for Payment Systems, Merchant-Presented Mode; Bank of Thailand,
"Standardized Thai QR Code for Payment Transactions", April 2019.
"""

import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from thaiqr import lint_fields as known

MAX_LENGTH = 512
# Accounts up to 25 are plain numbers of card schemes.
TEMPLATES = {*(str(tag) for tag in range(26, 52)), "62", "64", "80"}
CUSTOMER = "hQVDUFYwM[A-Za-z0-9+/]*={0,2}$"  # Base64 of a code that begins with the tag CPV01
HEAD, HEAD_LENGTH, CHECKSUM_LENGTH = re.compile("([0-9]{2})([0-9]{2})"), 4, 8


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

    def add(self, level: Level, message: str, tag: str | None = None, position: int | None = None) -> None:
        """Add a finding, without a position at the place of its tag."""
        if position is None:
            position = next((each.position for each in self.elements if each.tag == tag), None)
        self.findings.append(Finding(level, message, tag, position))


def lint(text: str) -> Report:
    """Read a payment code of any kind. It never raises; everything that is wrong is a finding."""
    report = Report(clean := text.strip("\r\n\t \ufeff"))
    if clean != text.rstrip("\r\n"):
        report.add(Level.WARNING, "There is space around the code, which scanners may refuse.")
    _, report.kind, read = next(each for each in READERS if re.match(each[0], clean, re.DOTALL))
    read(report)
    report.findings.sort(key=lambda each: (list(Level).index(each.level), each.position or 0))
    return report


def _say(level: Level, message: str, position: int | None = None) -> Callable[[Report], None]:
    return lambda report: report.add(level, message.format(report.text[:6]), position=position)


def _read_barcode(report: Report) -> None:
    """`|biller CR ref1 CR ref2 CR satang`. Source: Bank of Thailand, bill payment barcode."""
    parts, position = report.text[1:].replace("\r\n", "\r").replace("\n", "\r").split("\r"), 1
    if len(parts) != len(known.BARCODE):
        said = f"A barcode has 4 lines ({', '.join(known.BARCODE)}), divided by CR, not {len(parts)}."
        report.add(Level.ERROR, said, position=0)
        return
    for value, line in zip(parts, known.BARCODE, strict=True):
        report.elements.append(Element(line, known.NAMES.get(line, line.capitalize()), value, position))
        _check(report, line, value, known.RULES[line])
        position += len(value) + 1


def _read_fields(report: Report) -> None:
    text = report.text
    if bad := next((each for each in text if not each.isprintable()), ""):
        report.add(Level.ERROR, f"There is an unprintable character ({bad!r}).", position=text.index(bad))
    if len(text) > MAX_LENGTH:
        report.add(Level.ERROR, f"The code has {len(text)} characters. At most {MAX_LENGTH} are allowed.")
    is_whole = _split(report, 0, len(text), "", TEMPLATES)
    first = {each.tag: each.value for each in reversed(report.elements)}  # of a repeated tag
    values = {each.tag: first[each.tag] for each in report.elements}
    report.kind = _kind(values)
    is_foreign = report.kind is Kind.FOREIGN
    if is_whole:
        if not text.startswith("00"):
            report.add(Level.ERROR, "The code must begin with tag 00 (000201).", "00", 0)
        shape = [f"{tag}:{value[-4:]}" if tag in {"01", "29.00"} else tag for tag, value in values.items()]
        for tag, rules in known.STRUCTURE.items():
            is_told = tag not in {"29", "30", "31"} or (tag in values and not is_foreign)
            for level, pattern, message in rules if is_told else ():
                if not re.fullmatch(pattern, f";{';'.join(shape)};", re.DOTALL):
                    report.add(Level(level), message, None if tag == "-" else tag)
        rest = [each.tag for each in report.elements if re.fullmatch("(?!00|01|63)..", each.tag)]
        if rest != sorted(rest):
            report.add(Level.NOTE, "The tags are not in ascending order, in which banks issue them.")
        if is_foreign:
            where = f"{_scheme(values)}, country {values.get('58', '?')}, currency {values.get('53', '?')}"
            report.add(Level.WARNING, f"This is no Thai code: {where}.")
        for tag, value in values.items():
            of_tag = known.RULES.get(tag, known.RULES["additional"] if tag.startswith("62.") else [])
            _check(report, tag, value, of_tag if is_foreign else [*of_tag, *known.THAI_RULES.get(tag, [])])
            if not value.isascii() and tag != "64" and "." not in tag:
                report.add(Level.ERROR, f"Tag {tag} is not ASCII. A Thai name belongs into tag 64.", tag)
    _check_checksum(report, "63", is_whole)


def _read_slip(report: Report) -> None:
    """The code on a slip: tag 00 with bank and reference of the transfer, and its checksum in tag 91."""
    is_whole = _split(report, 0, len(report.text), "", {"00"})
    _check_checksum(report, "91", is_whole)


READERS: list[tuple[str, Kind, Callable[[Report], None]]] = [
    (r"\|", Kind.BARCODE, _read_barcode),
    ("00[0-9]{2}00", Kind.SLIP, _read_slip),
    ("[0-9]{4}.", Kind.OTHER, _read_fields),
    (CUSTOMER, Kind.CUSTOMER, _say(Level.NOTE, "A shop scans it. Its fields are not checked here.")),
    ("$", Kind.OTHER, _say(Level.ERROR, "The text is empty.")),
    (".{0,13}://", Kind.OTHER, _say(Level.ERROR, "This is a web address, not a payment code.")),
    ("", Kind.OTHER, _say(Level.ERROR, "A payment code begins with 000201. This text begins with {!r}.", 0)),
]


def _kind(values: Mapping[str, str]) -> Kind:
    thai = {"30": Kind.BILL, "29": Kind.TRANSFER, "31": Kind.INNOVATION}
    found = [kind for tag, kind in thai.items() if values.get(f"{tag}.00", "").startswith(known.THAI_AID)]
    if values.get("58", "TH") == "TH" and values.get("53", "764") == "764":
        found += [kind for tag, kind in thai.items() if tag in values and tag != "31"]
    return next(iter(found), Kind.FOREIGN)


def _check(report: Report, tag: str, value: str, rules: list[known.Rule]) -> None:
    """Tell the first rule that the value breaks."""
    for level, pattern, message in rules:
        if not re.fullmatch(pattern, value, re.ASCII | re.DOTALL):
            report.add(Level(level), message.format(value=value, size=len(value)), tag)
            return
    if rules and tag == "29.02" and not has_check_digit(value):
        report.add(Level.WARNING, f"The check digit of the id {value} is wrong. Is it mistyped?", tag)


def _scheme(values: Mapping[str, str]) -> str:
    """The foreign scheme of a code, as far as it is known."""
    for tag, text in values.items():
        for mark, name in known.SCHEMES.items():
            if tag == mark or (tag.endswith(".00") and len(mark) > 2 and text.upper().startswith(mark)):
                return name
    return "an unknown scheme"


def _split(report: Report, start: int, end: int, within: str, templates: set[str]) -> bool:
    """Add the fields between two places. Returns whether all could be read; only the first fault is told."""
    seen: set[str] = set()
    at, is_whole = start, True
    while at < end:
        head = HEAD.match(report.text, at, end)
        tag, size = (within + head[1], int(head[2])) if head else (within[:-1], 0)
        left, inner = end - at - HEAD_LENGTH, at + HEAD_LENGTH
        if not 0 < size <= left:
            place = f" in tag {within[:-1]}" if within else ""
            if size:
                follow = f"Tag {tag} says that {size} characters follow, but only {left} are left{place}."
                fault = f"{follow} A length is wrong, or the code was cut off."
            elif head:
                fault = f"Tag {tag} is empty."
            else:
                found = report.text[at : min(inner, end)]
                fault = f"Two digits of tag and two of length should stand here{place}, not {found!r}."
                fault += " Probably the length of the field before it is wrong, or characters were lost."
            if is_whole:
                report.add(Level.ERROR, fault, tag or None, at)
            return False
        if tag in seen:
            report.add(Level.ERROR, f"Tag {tag} appears twice.", tag, at)
        seen.add(tag)
        name = known.NAMES.get(tag, "Account of a scheme" if "02" <= tag[:2] <= "51" else "Unknown field")
        report.elements.append(Element(tag, name, report.text[inner : inner + size], at, tag in templates))
        if tag in templates:
            is_whole &= _split(report, inner, inner + size, f"{tag}.", set())
        at = inner + size
    return is_whole


def _check_checksum(report: Report, tag: str, is_whole: bool) -> None:
    """Compare the checksum. If it is wrong, say what it should be, and which mistake gives this value."""
    text, head, start = report.text, f"{tag}04", len(report.text) - CHECKSUM_LENGTH
    if text[-CHECKSUM_LENGTH:-HEAD_LENGTH] != head:
        missing = f"The checksum is missing. The code should end with {head}{crc16(text + head)}."
        if is_whole and all(each.tag != tag for each in report.elements):
            report.add(Level.ERROR, missing, tag, len(text))
        elif is_whole:
            report.add(Level.ERROR, "The checksum must have 4 characters and be the last field.", tag)
        return
    given, right = text[-HEAD_LENGTH:], crc16(text[:-HEAD_LENGTH])
    if given.upper() == right != given:
        level = Level.NOTE if tag == "91" else Level.WARNING
        report.add(level, f"The checksum {given} has lower-case letters; {right} is usual.", tag, start)
    elif given != right:
        mistakes = {
            crc16(text[:start]): "It was computed without the tag and length of the checksum itself.",
            crc16(text[:-HEAD_LENGTH], start=0): "It is CRC-16/XMODEM; it must start with FFFF.",
            right[2:] + right[:2]: "Its two bytes are swapped.",
        }
        mistake = mistakes.get(given.upper(), "The code was changed after it was made, or mistyped.")
        report.add(Level.ERROR, f"The checksum is {given}, but must be {right}. {mistake}", tag, start)


def crc16(data: str, *, start: int = 0xFFFF) -> str:
    """CRC-16/CCITT-FALSE in upper-case hex: "123456789" gives "29B1"."""
    return f"{binascii.crc_hqx(data.encode(errors='surrogatepass'), start):04X}"


def has_check_digit(value: str) -> bool:
    """Whether the last of 13 digits of a Thai id is the check digit of the others."""
    total = sum(int(digit) * (13 - place) for place, digit in enumerate(value[:12]))
    return (11 - total % 11) % 10 == int(value[12])
