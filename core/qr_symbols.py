"""The modules of a QR code. All pictures, cards, documents and pages of this service take them from here.

Source: ISO/IEC 18004, error correction M with a quiet zone of four modules.
"""

from typing import Any

import zxingcpp

QUIET_ZONE = 4
# A row has a byte for each module: 1 is dark, 0 is light.
Matrix = list[bytes]
_DARK_AND_LIGHT = bytes.maketrans(b"\x00\xff", b"\x01\x00")  # the library draws in levels of gray


def modules(text: str, *, has_quiet_zone: bool = True) -> Matrix:
    """The rows from the top to the bottom, in the smallest symbol that the text fits into.

    Raises ValueError for a text beyond ASCII, because readers differ in how they read it, and for one that
    is empty or too long.
    """
    if not text.isascii():
        raise ValueError("beyond ASCII")
    symbol = zxingcpp.create_barcode(text, zxingcpp.BarcodeFormat.QRCode, ec_level="M")
    image: Any = symbol.to_image(add_quiet_zones=has_quiet_zone)
    levels = memoryview(image)
    cells, size = bytes(levels).translate(_DARK_AND_LIGHT), len(levels)
    return [cells[start : start + size] for start in range(0, size * size, size)]
