"""Draw the card of a code: a frame with the code, the shop, the amount, the reference and the expiry.

`layout` decides what stands where; `png` and `pdf` write it.
"""

from typing import NamedTuple


class Texts(NamedTuple):
    """What a card says, in the language of the reader. Empty texts are left out."""

    shop: str
    amount: str
    reference: str
    expiry: str
    test_mark: str
