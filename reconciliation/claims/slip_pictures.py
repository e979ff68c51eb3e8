"""The slip on a picture that a payer sends. Nothing of the picture is stored."""

from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext_lazy as _

from core import decoders, rate_limits
from core.rate_limits import RateLimit
from reconciliation.slips import checking, pictures
from reconciliation.slips.checking import InvalidSlip
from reconciliation.slips.pictures import UnreadablePicture

# Of all payers of one merchant. A picture takes 0.6 s of CPU, a malicious one 3 s.
RATE = RateLimit(per_second=0.2, burst=20)
PAYMENT_CODE = _(
    "This picture shows the code that you paid. Choose the slip that your bank showed after the payment."
)
NOT_A_SLIP = _(
    "The QR code in this picture is not that of a slip. Choose another picture, or give the reference."
)


class NoSlip(Exception):
    """No slip could be read; the message tells the payer what to do."""


def read_reference(picture: "UploadedFile[bytes]", *, merchant_id: str) -> str:
    """The reference of the slip. Raises NoSlip."""
    room = rate_limits.consume(f"claim-picture:{merchant_id}", RATE)
    if room is not None and not room.allowed:
        raise NoSlip(pictures.BUSY)
    try:
        texts = pictures.read_qr_codes(picture.read(pictures.MAX_BYTES + 1), decoders.PICTURE_OF_PAYER)
    except UnreadablePicture as error:
        raise NoSlip(str(error)) from None
    text = checking.pick_slip(texts)
    try:
        _bank, transaction_id = checking.parse_slip(text)
    except InvalidSlip:
        is_payment_code = text.startswith(checking.PAYMENT_CODE_START)
        raise NoSlip(PAYMENT_CODE if is_payment_code else NOT_A_SLIP) from None
    return transaction_id
