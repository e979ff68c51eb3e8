"""Draw the card of a code: a frame with the code, the shop, the amount, the reference and the expiry.

A receipt is a card without a code.

`layout` decides what stands where; `png` and `pdf` write it.
"""

from typing import NamedTuple


class Texts(NamedTuple):
    """What a card says, in the language of the reader. Empty texts are left out."""

    shop: str
    amount: str
    reference: str
    note: str
    test_mark: str
    title: str = "THAI QR PAYMENT"
    facts: tuple[str, ...] = ()  # lines of a receipt, in the place of the code
