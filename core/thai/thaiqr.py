"""Thai QR codes of bill payments (tag 30): a strict reader, and the writer of our own.

Sources: EMVCo QR Code Specification for Payment Systems (Merchant-Presented Mode) and Bank of Thailand,
"Standardized Thai QR Code for Payment Transactions", April 2019.
"""

import re
from dataclasses import dataclass

from core import money
from core.thai.tlv import BadPayload, add_checksum, field, fields, strip_checksum

MAX_LENGTH = 512
CHECKSUM = "63"
LOCAL_LANGUAGE = "64"
# Tags whose values are fields again.
TEMPLATES = frozenset({"29", "30", "31", "62", "80"})
REFERENCE = re.compile("[A-Z0-9]{1,20}")
BILL = "A000000677010112"

# The form of each field. A path is "54", or "30.02" inside a template. Source: the tables of both documents.
SHAPES = {
    path: re.compile(shape)
    for path, shape in {
        "00": "01",
        "01": "1[12]",
        "30.00": BILL,
        "30.01": "[0-9]{13}|[0-9]{15}",
        "30.02": ".{1,20}",
        "30.03": ".{1,20}",
        "52": "[0-9]{4}",
        "53": "764",  # only THB, because we read amounts as satang
        "54": r"(?=.{1,13}$)(0|[1-9][0-9]*)(\.[0-9]{2})?",
        "58": "[A-Z]{2}",
        "59": ".{1,25}",
        "60": ".{1,15}",
        "61": ".{1,10}",
        "62.07": ".{1,26}",
    }.items()
}
REQUIRED = ("30.00", "30.01", "30.02", "53", "58")


@dataclass(frozen=True, slots=True)
class Payload:
    """What a code tells the bank. Absent references are empty.

    amount: satang; None where the payer types it. reference3: the additional data's 62.07, which some banks
    call the terminal id.
    """

    biller_id: str
    reference1: str
    reference2: str
    reference3: str
    amount: int | None


def parse(payload: str) -> Payload:
    """Read a code strictly. Raises BadPayload, also for codes other than bill payments within Thailand."""
    if len(payload) > MAX_LENGTH:
        raise BadPayload(f"longer than {MAX_LENGTH} characters")
    values: dict[str, str] = {}
    for tag, value in fields(strip_checksum(payload, CHECKSUM)):
        if not value.isascii() and tag != LOCAL_LANGUAGE:
            raise BadPayload(f"tag {tag} has characters beyond ASCII")
        if tag in TEMPLATES:
            values |= {f"{tag}.{part}": text for part, text in fields(value)}
        else:
            values[tag] = value
    _check_order(list(dict.fromkeys(path[:2] for path in values)))
    for path in REQUIRED:
        if path not in values:
            raise BadPayload(f"tag {path} is missing")
    for path, value in values.items():
        if path in SHAPES and not SHAPES[path].fullmatch(value):
            raise BadPayload(f"tag {path} is malformed")
    return Payload(
        biller_id=values["30.01"],
        reference1=values["30.02"],
        reference2=values.get("30.03", ""),
        reference3=values.get("62.07", ""),
        amount=money.satang(values["54"]) if "54" in values else None,
    )


def _check_order(tags: list[str]) -> None:
    if tags[:1] != ["00"]:
        raise BadPayload("the payload format (tag 00) is not the first field")
    if "01" in tags[2:]:
        raise BadPayload("the point of initiation (tag 01) is not the second field")
    if CHECKSUM in tags:
        raise BadPayload("the checksum (tag 63) is not the last field")


def bill_payment(
    *, biller_id: str, reference1: str, amount: int, reference2: str = "", reference3: str = ""
) -> str:
    """The code of one payment. amount: satang, within the limits of a payment. Raises BadPayload."""
    if not SHAPES["30.01"].fullmatch(biller_id):
        raise BadPayload("tag 30.01 is malformed")
    if not money.MIN_AMOUNT <= amount <= money.MAX_AMOUNT:
        raise BadPayload("the amount is outside the limits of a payment")
    bill = field("00", BILL) + field("01", biller_id) + _reference("02", reference1)
    if reference2:
        bill += _reference("03", reference2)
    body = f"000201010212{field('30', bill)}5303764{field('54', money.baht(amount))}5802TH"
    if reference3:
        body += field("62", _reference("07", reference3))
    return add_checksum(body, CHECKSUM)


def _reference(tag: str, value: str) -> str:
    if not REFERENCE.fullmatch(value):
        raise BadPayload("a reference is 1 to 20 characters of A-Z and 0-9")
    return field(tag, value)
