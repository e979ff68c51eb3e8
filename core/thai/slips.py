"""The mini-QR on a payer's slip, which is no payment code.

Sources: Bank of Thailand's slip verification QR; TrueMoney's own form of the slip as promptparse writes it.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime

from core.thai.tlv import BadPayload, add_checksum, field, fields, strip_checksum

SLIP_CHECKSUM = "91"
SLIP_API = "000001"
# The form of each field. The wallet writes the event, its id of the transfer, and the day as DDMMYYYY.
BANK_SLIP = {"00": SLIP_API, "01": "[0-9]{3}", "02": "[A-Za-z0-9]{1,25}"}
WALLET_SLIP = {"00": "01", "01": "01", "02": "[!-~]{1,25}", "03": "[A-Za-z0-9]{1,35}", "04": "[0-9]{8}"}
_WITH_CHECKSUM = re.compile(f"(.*{SLIP_CHECKSUM}04)([0-9A-Fa-f]{{1,4}})", re.DOTALL)


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


def parse_slip(payload: str) -> Slip | WalletSlip:
    """Read a slip's mini-QR. Raises BadPayload."""
    if match := _WITH_CHECKSUM.fullmatch(payload):
        # Some issuers write the checksum in lower case or without leading zeros.
        payload = match[1] + match[2].upper().zfill(4)
    top = dict(fields(strip_checksum(payload, SLIP_CHECKSUM)))
    transfer = dict(fields(top.pop("00", "")))
    if top == {"51": "TH"} and _has_form(transfer, BANK_SLIP):
        return Slip(transfer["01"], transfer["02"])
    if not top and _has_form(transfer, WALLET_SLIP):
        with suppress(ValueError):
            day = datetime.strptime(transfer["04"], "%d%m%Y").date()
            return WalletSlip(transfer["02"], transfer["03"], day)
    raise BadPayload("not the mini-QR of a Thai slip")


def _has_form(transfer: dict[str, str], form: dict[str, str]) -> bool:
    has_tags = transfer.keys() == form.keys()
    return has_tags and all(re.fullmatch(shape, transfer[tag]) for tag, shape in form.items())


def slip_payload(slip: Slip) -> str:
    """Write the mini-QR of a bank's slip. Raises BadPayload."""
    transfer = field("00", SLIP_API) + field("01", slip.sending_bank) + field("02", slip.transaction_id)
    return add_checksum(field("00", transfer) + field("51", "TH"), SLIP_CHECKSUM)
