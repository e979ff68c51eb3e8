"""PNG files of at most 16 colours, written with the standard library alone.

Source: PNG Specification (Third Edition), sections 5 and 11.
"""

import struct
import zlib
from collections.abc import Iterable, Sequence

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GRAYSCALE = 0
PALETTE = 3
UNFILTERED = b"\0"

Colour = tuple[int, int, int]


def grayscale(width: int, rows: Sequence[bytes]) -> bytes:
    """Black and white at one bit a pixel, 1 being white; each row is whole bytes."""
    return _file(_header(width, len(rows), 1, GRAYSCALE), rows)


def palette(width: int, rows: Sequence[bytes], colours: Sequence[Colour]) -> bytes:
    """Up to 16 colours at four bits a pixel; each row is whole bytes."""
    table = b"".join(bytes(colour) for colour in colours)
    return _file(_header(width, len(rows), 4, PALETTE) + _chunk(b"PLTE", table), rows)


def _header(width: int, height: int, depth: int, colour_type: int) -> bytes:
    return _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, 0))


def _file(head: bytes, rows: Iterable[bytes]) -> bytes:
    pixels = b"".join(UNFILTERED + row for row in rows)
    return SIGNATURE + head + _chunk(b"IDAT", zlib.compress(pixels)) + _chunk(b"IEND", b"")


def _chunk(name: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)
