"""The modules of a QR code. All pictures, cards, documents and pages of this service take them from here.

Source: ISO/IEC 18004, error correction M with a quiet zone of four modules.
"""

from qrcode.constants import ERROR_CORRECT_M
from qrcode.exceptions import DataOverflowError
from qrcode.main import QRCode

QUIET_ZONE = 4
# To try all eight masks takes 85 % of the time. Readers read each; this one has the best average score.
MASK = 6
# Fewer digits in a row are written as letters: to switch costs more bits than it saves.
DIGITS_IN_A_ROW = 10
# A row has a byte for each module: 1 is dark, 0 is light.
Matrix = list[bytes]


def modules(text: str, *, has_quiet_zone: bool = True) -> Matrix:
    """The rows from the top to the bottom, in the smallest symbol that the text fits into.

    Raises ValueError for a text beyond ASCII, because readers differ in how they read it, and for one that
    is empty or too long.
    """
    if not text or not text.isascii():
        raise ValueError("empty or beyond ASCII")
    border = QUIET_ZONE if has_quiet_zone else 0
    symbol = QRCode(error_correction=ERROR_CORRECT_M, border=border, mask_pattern=MASK)
    symbol.add_data(text, optimize=DIGITS_IN_A_ROW)
    try:
        symbol.make(fit=False)  # with True it would look for the smallest symbol twice
        return [bytes(line) for line in symbol.get_matrix()]
    except (DataOverflowError, ValueError) as error:
        raise ValueError("too long") from error
