"""What a Thai QR payload must hold: which fields, in which shape, in which place.

A path is "54", or "30.02" for a field inside a template. Sources: the data tables of Bank of Thailand,
"Standardized Thai QR Code for Payment Transactions" (2019), and of EMVCo's Merchant-Presented Mode.
"""

import re
from collections.abc import Iterator, Mapping

from core.tlv import BadPayload

TRANSFER = "A000000677010111"
TRANSFER_SHOWN_BY_PAYER = "A000000677010114"
BILL = "A000000677010112"
BILL_CROSS_BORDER = "A000000677012006"
INNOVATION = "A000000677010113"

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
        "53": "764",  # amounts are read as satang, which any other currency would make wrong
        "54": r"(?=.{1,13}$)(0|[1-9][0-9]*)(\.[0-9]{2})?",
        "58": "[A-Z]{2}",
        "59": ".{1,25}",
        "60": ".{1,15}",
        "61": ".{1,10}",
        "62.07": ".{1,26}",
    }.items()
}


def check(values: Mapping[str, str]) -> None:
    """Judge a payload's values by their paths, in the payload's order. Raises BadPayload."""
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
        raise BadPayload("nobody to pay")


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
