"""Objects of Opn Payments (Omise), as docs.omise.co describes them in version 2019-05-29."""

import logging

from banks.paging import Json

log = logging.getLogger("banks")
ORDER_ID_KEY = "order_id"  # the name of our id in the metadata


def order_id_of(row: Json) -> str:
    """Our id in the metadata, or empty."""
    metadata = row.get("metadata")
    value = metadata.get(ORDER_ID_KEY) if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else ""


def parse_fees(charge: Json) -> tuple[int, int] | tuple[None, None]:
    """The fee of a charge and its VAT, with the interest of instalments that the merchant bears."""
    fee = _sum_of(charge, "fee", "interest")
    fee_vat = _sum_of(charge, "fee_vat", "interest_vat")
    if fee is None or fee_vat is None:
        return None, None
    if min(fee, fee_vat) < 0 or fee + fee_vat > charge["amount"]:
        log.error("the fee of charge %s is impossible: %s and VAT of %s", charge["id"], fee, fee_vat)
        return None, None
    return fee, fee_vat


def _sum_of(data: Json, name: str, optional: str) -> int | None:
    """The sum of two amounts, or None if one is malformed. Only the second may be missing."""
    first, second = data.get(name), data.get(optional)
    second = 0 if second is None else second
    return first + second if type(first) is int and type(second) is int else None
