"""Read the QR code of a slip's picture. Pictures come from strangers: size, time and number are limited."""

import json
import tempfile
from pathlib import Path

from django.utils.translation import gettext_lazy as _

from core.http import uploads
from core.work import decoders
from core.work.decoders import DecoderFailed, Place

DECODER = Path(__file__).with_name("decode_picture.py")
MAX_BYTES = uploads.MAX_PICTURE
BUSY = _("Another picture is being read. Try again in a few seconds.")
TOO_SLOW = _("The picture takes too long to read. Crop it to the QR code.")
FAILED = _("The picture cannot be read. Crop it to the QR code.")
TOO_MANY_BYTES = _("The picture has more than 10 MB. Take a screenshot of it, or make it smaller.")
REASONS = {
    "no_qr_code": _("No QR code can be read in this picture. Crop it, or take a sharper picture."),
    "too_large": _("The picture has too many pixels. Take a screenshot of it, or make it smaller."),
    "not_a_picture": _("This is not a PNG, JPEG or WebP picture, or it is broken."),
}
"""By the names of `decode_picture.py`."""


class UnreadablePicture(Exception):
    """Nothing to look up could be read; the message says why."""


class DecoderBusy(UnreadablePicture):
    """Another picture is being read."""


def read_qr_codes(picture: bytes, place: Place = decoders.PICTURE_OF_STAFF) -> list[str]:
    """The texts of the QR codes on a PNG, JPEG or WebP, at least one. Raises UnreadablePicture."""
    if len(picture) > MAX_BYTES:
        raise UnreadablePicture(TOO_MANY_BYTES)
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as printed:
        source.write(picture)
        source.seek(0)
        try:
            decoders.run(DECODER, place, source, printed)
        except BlockingIOError:
            raise DecoderBusy(BUSY) from None
        except DecoderFailed as failure:
            raise UnreadablePicture(TOO_SLOW if failure.is_over_limit else FAILED) from None
        printed.seek(0)
        found = json.load(printed)
    if isinstance(found, str):
        raise UnreadablePicture(REASONS[found])
    return [str(text) for text in found]
