"""Thai QR payment codes: a strict reader, and the writer of our own bill payments (tag 30).

Sources: EMVCo QR Code Specification for Payment Systems (Merchant-Presented Mode) and Bank of Thailand,
"Standardized Thai QR Code for Payment Transactions", April 2019.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from core import money
from core.tlv import BadPayload, Field, add_checksum, field, fields, strip_checksum

Tag = tuple[str, str | tuple[Field, ...]]

MAX_LENGTH = 512
CHECKSUM = "63"
LOCAL_LANGUAGE = "64"
TEMPLATES = frozenset({"29", "30", "31", "62", "80"})

REFERENCE = re.compile("[A-Z0-9]{1,20}")

TRANSFER = "A000000677010111"
TRANSFER_SHOWN_BY_PAYER = "A000000677010114"
BILL = "A000000677010112"
BILL_CROSS_BORDER = "A000000677012006"
INNOVATION = "A000000677010113"

# The form of each field. A path is "54", or "30.02" inside a template. Source: the tables of both documents.
SHAPES = {
    path: re.compile(shape)
    for path, shape in {
        "00": "01",
        "01": "1[12]",
        "29.00": f"{TRANSFER}|{TRANSFER_SHOWN_BY_PAYER}",
        "29.01": "[0-9]{13}",
        "29.02": "[0-9]{13}",
        "29.03": "[0-9]{15}",
        "29.04": "[0-9]{3}.{1,40}",
        "29.05": ".{10}",
        "30.00": f"{BILL}|{BILL_CROSS_BORDER}",
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


class Kind(StrEnum):
    CREDIT_TRANSFER = "credit_transfer"  # tag 29: to a phone, id, wallet or account; carries no reference
    BILL_PAYMENT = "bill_payment"  # tag 30: to a biller, with references
    BILL_PAYMENT_CROSS_BORDER = "bill_payment_cross_border"
    PAYMENT_INNOVATION = "payment_innovation"  # tag 31 alone
    OTHER = "other"  # well-formed, for another scheme


@dataclass(frozen=True, slots=True)
class Payload:
    """The fields of a payload in their order, without the checksum."""

    tags: tuple[Tag, ...]

    def value(self, path: str) -> str | None:
        """The text at "54", or at "30.02" inside a template; None where absent."""
        return _by_path(self.tags).get(path)

    @property
    def kind(self) -> Kind:
        tags = {tag for tag, _ in self.tags}
        if "30" in tags:
            return Kind.BILL_PAYMENT if self.value("30.00") == BILL else Kind.BILL_PAYMENT_CROSS_BORDER
        if "29" in tags:
            return Kind.CREDIT_TRANSFER
        return Kind.PAYMENT_INNOVATION if "31" in tags else Kind.OTHER

    @property
    def biller_id(self) -> str | None:
        return self.value("30.01")

    @property
    def reference1(self) -> str | None:
        return self.value("30.02")

    @property
    def reference2(self) -> str | None:
        return self.value("30.03")

    @property
    def reference3(self) -> str | None:
        return self.value("62.07")

    @property
    def amount(self) -> int | None:
        """Satang; None where the payer types the amount."""
        baht = self.value("54")
        return None if baht is None else money.satang(baht)

    @property
    def currency(self) -> str:
        return money.CURRENCY

    @property
    def is_dynamic(self) -> bool:
        """Whether the code was made for one payment. It can still be paid twice."""
        return self.value("01") == "12"


def parse(payload: str) -> Payload:
    """Read a payload strictly. Raises BadPayload."""
    _check_length(payload)
    tags = tuple(_opened(tag, value) for tag, value in fields(strip_checksum(payload, CHECKSUM)))
    _check_fields(_by_path(tags))
    return Payload(tags)


def build(tags: Iterable[Tag]) -> str:
    """Write fields in the order given and close them with the checksum. Raises BadPayload."""
    payload = add_checksum("".join(field(tag, _closed(value)) for tag, value in tags), CHECKSUM)
    _check_length(payload)
    return payload


def bill_payment(
    *,
    biller_id: str,
    reference1: str,
    amount: int | None,
    reference2: str | None = None,
    reference3: str | None = None,
    dynamic: bool = True,
    cross_border: bool = False,
    bank_code: str | None = None,
    category_code: str | None = None,
    city: str | None = None,
) -> str:
    """A bill payment (tag 30) with its tags ascending. Raises BadPayload.

    amount: satang, within the limits of a payment; None lets the payer type it.
    reference3: the additional data's 62.07, which some banks call the terminal id.
    bank_code: repeats the references in tag 31 for that bank, as KBank (004) issues its codes.
    category_code: the merchant's MCC, four digits.
    """
    bill = (
        field("00", BILL_CROSS_BORDER if cross_border else BILL)
        + _shaped("30.01", biller_id)
        + _reference("02", reference1)
        + _optional_reference("03", reference2)
    )
    body = (
        "000201"
        + ("010212" if dynamic else "010211")
        + field("30", bill)
        + (_innovation(bank_code, reference1, reference2) if bank_code is not None else "")
        + (_shaped("52", category_code) if category_code is not None else "")
        + "5303764"
        + (field("54", _baht(amount)) if amount is not None else "")
        + "5802TH"
        + (_shaped("60", city) if city is not None else "")
        + (field("62", _reference("07", reference3)) if reference3 is not None else "")
    )
    return add_checksum(body, CHECKSUM)


def _innovation(bank_code: str, reference1: str, reference2: str | None) -> str:
    if not re.fullmatch("[0-9]{3}", bank_code):
        raise BadPayload("a bank code is three digits")
    references = _reference("02", reference1) + _optional_reference("04", reference2)
    return field("31", field("00", INNOVATION) + field("01", bank_code) + references)


def _shaped(path: str, value: str) -> str:
    if not (value.isascii() and SHAPES[path].fullmatch(value)):
        raise BadPayload(f"tag {path} is malformed")
    return field(path[-2:], value)


def _reference(tag: str, value: str) -> str:
    if not REFERENCE.fullmatch(value):
        raise BadPayload("a reference is 1 to 20 characters of A-Z and 0-9")
    return field(tag, value)


def _optional_reference(tag: str, value: str | None) -> str:
    return "" if value is None else _reference(tag, value)


def _baht(satang: int) -> str:
    if not money.MIN_AMOUNT <= satang <= money.MAX_AMOUNT:
        raise BadPayload("the amount is outside the limits of a payment")
    return money.baht(satang)


def _check_length(payload: str) -> None:
    if len(payload) > MAX_LENGTH:
        raise BadPayload(f"longer than {MAX_LENGTH} characters")


def _opened(tag: str, value: str) -> Tag:
    if not value.isascii() and tag != LOCAL_LANGUAGE:
        raise BadPayload(f"tag {tag} has characters beyond ASCII")
    return tag, tuple(fields(value)) if tag in TEMPLATES else value


def _closed(value: str | tuple[Field, ...]) -> str:
    return value if isinstance(value, str) else "".join(field(*part) for part in value)


def _by_path(tags: Iterable[Tag]) -> dict[str, str]:
    values: dict[str, str] = {}
    for tag, value in tags:
        if isinstance(value, str):
            values[tag] = value
        else:
            values.update((f"{tag}.{part}", text) for part, text in value)
    return values


def _check_fields(values: Mapping[str, str]) -> None:
    """Check which fields there are, in which order and form. Raises BadPayload."""
    _check_order(list(dict.fromkeys(path[:2] for path in values)))
    _check_shapes(values)
    for path in _required(values):
        if path not in values:
            raise BadPayload(f"tag {path} is missing")
    if "29.00" in values and sum(f"29.0{part}" in values for part in range(1, 5)) != 1:
        raise BadPayload("tag 29 names no payee, or several")


def _check_order(tags: list[str]) -> None:
    if tags[:1] != ["00"]:
        raise BadPayload("the payload format (tag 00) is not the first field")
    if "01" in tags[2:]:
        raise BadPayload("the point of initiation (tag 01) is not the second field")
    if "63" in tags:
        raise BadPayload("the checksum (tag 63) is not the last field")
    if not any("02" <= tag <= "51" for tag in tags):
        raise BadPayload("the payee is missing")


def _check_shapes(values: Mapping[str, str]) -> None:
    for path, value in values.items():
        if path in SHAPES and not SHAPES[path].fullmatch(value):
            raise BadPayload(f"tag {path} is malformed")


def _required(values: Mapping[str, str]) -> Iterator[str]:
    yield from ("53", "58")
    tags = {path[:2] for path in values}
    yield from (f"{tag}.00" for tag in ("29", "30", "31") if tag in tags)
    if "30" in tags:
        yield from ("30.01", "30.02")
    if values.get("29.00") == TRANSFER_SHOWN_BY_PAYER:
        yield "29.05"
