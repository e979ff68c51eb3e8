"""The mini-QR on a payer's slip, and the barcode on a bill. Neither is a payment code.

Sources: Bank of Thailand's slip verification QR and its bill payment barcode;
TrueMoney's own form of the slip as promptparse writes it.
"""

import re
from dataclasses import dataclass
from datetime import date

from core.tlv import BadPayload, add_checksum, field, fields, strip_checksum

SLIP_CHECKSUM = "91"
SLIP_API, WALLET_API = "000001", "01"
_WITH_CHECKSUM = re.compile(f"(.*{SLIP_CHECKSUM}04)([0-9A-Fa-f]{{1,4}})", re.DOTALL)
_BARCODE = re.compile(
    r"\|([0-9]{13}|[0-9]{15})\r([A-Z0-9]{1,20})\r([A-Z0-9]{1,20})?\r(0|[1-9][0-9]{0,11})", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Slip:
    """The sending bank, and its id of the transfer."""

    sending_bank: str
    transaction_id: str


@dataclass(frozen=True, slots=True)
class WalletSlip:
    """A transfer from a TrueMoney wallet: its type (such as "P2P"), its id and its day."""

    event_type: str
    transaction_id: str
    day: date


@dataclass(frozen=True, slots=True)
class Bill:
    """The content of a bill's barcode; amount in satang, or None if the payer chooses it."""

    biller_id: str
    reference1: str
    reference2: str | None
    amount: int | None


def parse_slip(payload: str) -> Slip | WalletSlip:
    """Read a slip's mini-QR. Raises BadPayload."""
    if match := _WITH_CHECKSUM.fullmatch(payload):
        # Some issuers write the checksum in lower case or without leading zeros.
        payload = match[1] + match[2].upper().zfill(4)
    top = dict(fields(strip_checksum(payload, SLIP_CHECKSUM)))
    transfer = dict(fields(top.pop("00", "")))
    if top == {"51": "TH"}:
        if set(transfer) != {"00", "01", "02"} or transfer["00"] != SLIP_API:
            raise BadPayload("not a transfer's slip")
        of_bank = Slip(transfer["01"], transfer["02"])
        _check_slip(of_bank)
        return of_bank
    if top:
        raise BadPayload("not the mini-QR of a Thai slip")
    if set(transfer) != {"00", "01", "02", "03", "04"} or {transfer["00"], transfer["01"]} != {WALLET_API}:
        raise BadPayload("not a wallet's slip")
    of_wallet = WalletSlip(transfer["02"], transfer["03"], _wallet_day(transfer["04"]))
    _check_wallet_slip(of_wallet)
    return of_wallet


def slip_payload(slip: Slip | WalletSlip) -> str:
    """Write a slip's mini-QR. Raises BadPayload."""
    if isinstance(slip, WalletSlip):
        _check_wallet_slip(slip)
        day = f"{slip.day:%d%m}{slip.day.year:04d}"
        values = [WALLET_API, WALLET_API, slip.event_type, slip.transaction_id, day]
        transfer = "".join(field(f"{tag:02d}", value) for tag, value in enumerate(values))
        payload = add_checksum(field("00", transfer), SLIP_CHECKSUM)
        return payload[:-4] + payload[-4:].lower()
    _check_slip(slip)
    transfer = field("00", SLIP_API) + field("01", slip.sending_bank) + field("02", slip.transaction_id)
    return add_checksum(field("00", transfer) + field("51", "TH"), SLIP_CHECKSUM)


def _check_slip(slip: Slip) -> None:
    if not re.fullmatch("[0-9]{3}", slip.sending_bank):
        raise BadPayload("the sending bank is not three digits")
    if not re.fullmatch("[A-Za-z0-9]{1,25}", slip.transaction_id):
        raise BadPayload("the transaction id is not 1 to 25 letters and digits")


def _wallet_day(text: str) -> date:
    match = re.fullmatch("([0-9]{2})([0-9]{2})([0-9]{4})", text)
    try:
        day, month, year = map(int, match.groups()) if match else (0, 0, 0)
        return date(year, month, day)
    except ValueError:
        raise BadPayload("the day is not DDMMYYYY") from None


def _check_wallet_slip(slip: WalletSlip) -> None:
    if not re.fullmatch("[!-~]{1,25}", slip.event_type):
        raise BadPayload("the event type is not 1 to 25 letters, digits and signs")
    if not re.fullmatch("[A-Za-z0-9]{1,35}", slip.transaction_id):
        raise BadPayload("the transaction id is not 1 to 35 letters and digits")


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
