"""What Siam Commercial Bank says of the transfer that a slip names."""

import re
from collections.abc import Mapping
from typing import Any

from banks import reading, texts
from banks.base import Transferred, Unreadable
from core.errors import InvalidRequest
from core.slips import Slip

_SHAPES = {
    "transDate": re.compile("[0-9]{8}"),
    "transTime": re.compile("[0-9]{2}:[0-9]{2}:[0-9]{2}"),
}
_NUMBER = "[0-9A-Za-z*-]{1,40}"  # accounts come cut, such as xxx-x-x1234-x
_BILLER = "[0-9]{15}"


def read(body: bytes, slip: Slip) -> Transferred:
    """Raises Unreadable."""
    try:
        told = reading.loads(body).get("data")
        if not isinstance(told, dict):
            raise ValueError("data is no object")
        return _transferred(told, slip)
    except (InvalidRequest, ValueError, OverflowError) as error:
        raise Unreadable(str(error)) from None


def _transferred(told: Mapping[str, Any], slip: Slip) -> Transferred:
    if (told.get("transRef"), told.get("sendingBank")) != (slip.transaction_id, slip.sending_bank):
        raise ValueError("an answer to another question")
    text = texts.shaped(told, _SHAPES)
    day = text["transDate"]
    receiver = _part(told, "receiver")
    proxy, account = (_part(receiver, name) for name in ("proxy", "account"))
    names = [reading.optional(receiver, name, reading.NAME) for name in ("displayName", "name")]
    numbers = [reading.optional(part, "value", _NUMBER) for part in (proxy, account)]
    payee = [next(filter(None, names), ""), *numbers]
    return Transferred(
        amount=reading.satang(told.get("amount")),
        at=reading.instant(f"{day[:4]}-{day[4:6]}-{day[6:]}T{text['transTime']}+07:00"),
        payee=" ".join(filter(None, payee)),
        biller_id=reading.optional(proxy, "value", _BILLER),
        reference1=reading.reference(told, "ref1"),
        reference2=reading.reference(told, "ref2"),
        reference3=reading.reference(told, "ref3"),
    )


def _part(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = told.get(name)
    return part if isinstance(part, dict) else {}
