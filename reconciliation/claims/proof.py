"""Whether somebody who claims a refund knows what only its payer knows."""

import hmac
import re
from collections.abc import Sequence

from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext_lazy as _

from core import plain_text
from core.http import rate_limits
from core.http.rate_limits import RateLimit
from core.work import decoders
from payments import payers
from payments.models import Payment
from reconciliation.slips import checking, pictures
from reconciliation.slips.checking import InvalidSlip
from reconciliation.slips.pictures import UnreadablePicture

# Of all payers of one merchant. A picture takes 0.6 s of CPU, a malicious one 3 s.
PICTURE_RATE = RateLimit(per_second=0.2, burst=20)
PAYMENT_CODE = _(
    "This picture shows the code that you paid. Choose the slip that your bank showed after the payment."
)
NOT_A_SLIP = _(
    "The QR code in this picture is not that of a slip. Choose another picture, or give the reference."
)
_ENDS_WITH_DIGITS = re.compile(r"[0-9]{4}\Z", re.ASCII)


def read_slip(picture: "UploadedFile[bytes]", *, merchant_id: str) -> str:
    """The reference of the slip on a picture, of which nothing is stored. Raises UnreadablePicture."""
    room = rate_limits.consume(f"claim-picture:{merchant_id}", PICTURE_RATE)
    if room is not None and not room.allowed:
        raise UnreadablePicture(pictures.BUSY)
    texts = pictures.read_qr_codes(picture.read(pictures.MAX_BYTES + 1), decoders.PICTURE_OF_PAYER)
    try:
        _bank, transaction_id = checking.parse_slip(texts)
    except InvalidSlip:
        is_payment_code = texts[0].startswith(checking.PAYMENT_CODE_START)
        raise UnreadablePicture(PAYMENT_CODE if is_payment_code else NOT_A_SLIP) from None
    return transaction_id


def is_right(payment: Payment, *, slip_references: Sequence[str], last_digits: str) -> bool:
    """Whether each proof that is given is right. One is enough. All are compared in constant time."""
    references = _slip_references(payment)
    # Some banks report only the last digits of the account that paid.
    ends = _ENDS_WITH_DIGITS.findall(payers.reported(payment).account)
    found = [_is_one_of(plain_text.compact(each).upper(), references) for each in slip_references]
    if last_digits:
        found.append(_is_one_of(last_digits, ends))
    return bool(found) and all(found)


def _slip_references(payment: Payment) -> list[str]:
    """What the slip of the payer can show as its reference.

    Only of the money that paid: somebody else can pay the same code again, and would have a slip of it.
    """
    credits = payment.bank_transactions.credited()
    found = [name for each in credits for name in (each.slip_reference, *each.bank_references)]
    return [plain_text.compact(name).upper() for name in found if name]


def _is_one_of(text: str, expected: list[str]) -> bool:
    found = [hmac.compare_digest(text.encode(), each.encode()) for each in expected]
    return any(found)
