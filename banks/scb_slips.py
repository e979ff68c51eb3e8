"""What Siam Commercial Bank says of the transfer that a slip names."""

import re
from collections.abc import Mapping
from typing import Any

from banks import parsing
from banks.base import SlipTransfer, UnreadableMessage
from core.errors import InvalidRequest
from core.slips import Slip

_PATTERNS = {
    "transDate": re.compile("[0-9]{8}"),
    "transTime": re.compile("[0-9]{2}:[0-9]{2}:[0-9]{2}"),
}
_NUMBER = "[0-9A-Za-z*-]{1,40}"  # accounts come cut, such as xxx-x-x1234-x
_BILLER = "[0-9]{15}"


def parse_slip_transfer(body: bytes, slip: Slip) -> SlipTransfer:
    """Raises Unreadable."""
    try:
        data = parsing.parse_json(body).get("data")
        if not isinstance(data, dict):
            raise ValueError("data is no object")
        return _parse_transfer(data, slip)
    except (InvalidRequest, ValueError, OverflowError) as error:
        raise UnreadableMessage(str(error)) from None


def _parse_transfer(data: Mapping[str, Any], slip: Slip) -> SlipTransfer:
    if (data.get("transRef"), data.get("sendingBank")) != (slip.transaction_id, slip.sending_bank):
        raise ValueError("an answer to another question")
    text = parsing.matching_texts(data, _PATTERNS)
    day = text["transDate"]
    receiver = _section(data, "receiver")
    proxy, account = (_section(receiver, name) for name in ("proxy", "account"))
    names = [parsing.optional_text(receiver, name, parsing.NAME_PATTERN) for name in ("displayName", "name")]
    numbers = [parsing.optional_text(part, "value", _NUMBER) for part in (proxy, account)]
    payee = [next(filter(None, names), ""), *numbers]
    return SlipTransfer(
        amount=parsing.parse_amount(data.get("amount")),
        transferred_at=parsing.parse_instant(f"{day[:4]}-{day[4:6]}-{day[6:]}T{text['transTime']}+07:00"),
        payee=" ".join(filter(None, payee)),
        biller_id=parsing.optional_text(proxy, "value", _BILLER),
        reference1=parsing.optional_reference(data, "ref1"),
        reference2=parsing.optional_reference(data, "ref2"),
        reference3=parsing.optional_reference(data, "ref3"),
    )


def _section(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = data.get(name)
    return part if isinstance(part, dict) else {}
