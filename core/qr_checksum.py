"""The checksum at the end of all Thai payment codes.

Source: EMVCo QR Code Specification for Payment Systems, Merchant-Presented Mode, section 4.7.
"""

import binascii

from core.tlv import BadPayload


def crc16(data: str) -> str:
    """CRC-16/CCITT-FALSE in upper-case hex; "123456789" gives "29B1"."""
    return f"{binascii.crc_hqx(data.encode(), 0xFFFF):04X}"


def add_checksum(body: str, tag: str) -> str:
    """Append the checksum, which also covers its own tag and length."""
    text = f"{body}{tag}04"
    return text + crc16(text)


def strip_checksum(payload: str, tag: str) -> str:
    """The payload without its checksum under `tag`. Raises BadPayload if the checksum is wrong."""
    if not payload.isprintable():
        raise BadPayload("unprintable characters")
    if payload[-8:-4] != f"{tag}04":
        raise BadPayload(f"the checksum (tag {tag}) is not the last field")
    if payload[-4:] != crc16(payload[:-4]):
        raise BadPayload("wrong checksum")
    return payload[:-8]
