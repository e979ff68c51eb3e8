"""What else Thai banks print for a scanner: the mini-QR on a payer's slip, and the barcode on a bill.

Neither is payable by itself. Sources: Bank of Thailand's slip verification QR and its bill payment barcode.
"""

import re
from dataclasses import dataclass

from core.tlv import BadPayload, field, fields, seal, unseal

SLIP_CHECKSUM = "91"
SLIP_API = "000001"
_BARCODE = re.compile(
    r"\|([0-9]{13}|[0-9]{15})\r([A-Z0-9]{1,20})\r([A-Z0-9]{1,20})?\r(0|[1-9][0-9]{0,11})", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Slip:
    """Which bank sent the money, and that bank's own id of the transfer."""

    sending_bank: str
    transaction_id: str


@dataclass(frozen=True, slots=True)
class Bill:
    """What a counter's scanner reads off a bill; amount in satang, None where it is open."""

    biller_id: str
    reference1: str
    reference2: str | None
    amount: int | None


def parse_slip(payload: str) -> Slip:
    """Read a slip's mini-QR. Raises BadPayload."""
    top = dict(fields(unseal(payload, SLIP_CHECKSUM)))
    transfer = dict(fields(top.get("00", "")))
    if set(top) != {"00", "51"} or top["51"] != "TH":
        raise BadPayload("not the mini-QR of a Thai slip")
    if set(transfer) != {"00", "01", "02"} or transfer["00"] != SLIP_API:
        raise BadPayload("not a transfer's slip")
    slip = Slip(transfer["01"], transfer["02"])
    _check_slip(slip)
    return slip


def slip_payload(slip: Slip) -> str:
    """Write a slip's mini-QR. Raises BadPayload."""
    _check_slip(slip)
    transfer = field("00", SLIP_API) + field("01", slip.sending_bank) + field("02", slip.transaction_id)
    return seal(field("00", transfer) + field("51", "TH"), SLIP_CHECKSUM)


def _check_slip(slip: Slip) -> None:
    if not re.fullmatch("[0-9]{3}", slip.sending_bank):
        raise BadPayload("the sending bank is not three digits")
    if not re.fullmatch("[A-Za-z0-9]{1,25}", slip.transaction_id):
        raise BadPayload("the transaction id is not 1 to 25 letters and digits")


def parse_barcode(text: str) -> Bill:
    """Read a bill's barcode. Raises BadPayload."""
    match = _BARCODE.fullmatch(text)
    if not match:
        raise BadPayload("not a bill payment barcode")
    biller_id, reference1, reference2, amount = match.groups()
    return Bill(biller_id, reference1, reference2, int(amount) or None)


def barcode(bill: Bill) -> str:
    """Write a bill's barcode. Raises BadPayload."""
    text = f"|{bill.biller_id}\r{bill.reference1}\r{bill.reference2 or ''}\r{bill.amount or 0}"
    if parse_barcode(text) != bill:
        raise BadPayload("not a bill payment barcode")
    return text
