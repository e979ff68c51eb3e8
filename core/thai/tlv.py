"""The fields of all Thai payment codes as text: tag, length and value, with a checksum at the end.

Source: EMVCo QR Code Specification for Payment Systems, Merchant-Presented Mode, sections 4.1 and 4.7.
"""

import binascii
import re
from collections.abc import Iterator

_HEAD = re.compile("[0-9]{4}")


class BadPayload(ValueError):
    """The text is not a valid payment code. The message names the first fault."""


def field(tag: str, value: str) -> str:
    """One field as text. Raises BadPayload for a value of 0 or more than 99 characters."""
    size = len(value)
    if not 0 < size < 100:
        raise BadPayload(f"tag {tag} is empty or longer than 99 characters")
    return f"{tag}{size:02d}{value}"


def fields(text: str) -> Iterator[tuple[str, str]]:
    """Split text into its fields. Raises BadPayload at a malformed or repeated field."""
    at, seen = 0, set()
    while at < len(text):
        if not _HEAD.match(text, at):
            raise BadPayload(f"two digits of tag and two of length expected at {text[at : at + 4]!r}")
        tag, size = text[at : at + 2], int(text[at + 2 : at + 4])
        value = text[at + 4 : at + 4 + size]
        if not size or len(value) < size:
            raise BadPayload(f"tag {tag} says {size} characters, {len(value)} follow")
        if tag in seen:
            raise BadPayload(f"tag {tag} appears twice")
        seen.add(tag)
        yield tag, value
        at += 4 + size


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
