"""Read the QR code of a slip's picture. Pictures come from strangers: size, time and number are limited."""

import json
import signal
import subprocess
import sys
from enum import StrEnum
from pathlib import Path

from django.utils.translation import gettext_lazy as _

from core import uploads
from core.bulkhead import Bulkhead, BulkheadFull

DECODER = Path(__file__).with_name("decode_picture.py")
MAX_BYTES = uploads.MAX_PICTURE
TIMEOUT_SECONDS = 8.0  # the decoder's CPU limit comes first, unless the machine is busy
KILL_SIGNALS = {-signal.SIGXCPU, -signal.SIGKILL}
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
_slots = Bulkhead()


class Sender(StrEnum):
    """Who sends a picture. A process reads one of each at once: payers do not keep staff waiting."""

    STAFF = "staff"
    PAYER = "payer"


class UnreadablePicture(Exception):
    """No QR code could be read; the message says why."""


def read_qr_codes(picture: bytes, sender: Sender = Sender.STAFF) -> list[str]:
    """The texts of the QR codes on a PNG, JPEG or WebP, at least one. Raises UnreadablePicture."""
    if len(picture) > MAX_BYTES:
        raise UnreadablePicture(TOO_MANY_BYTES)
    try:
        with _slots.hold(sender, total=len(Sender), share=1):
            found = json.loads(_run_decoder(picture))
    except BulkheadFull:
        raise UnreadablePicture(BUSY) from None
    if isinstance(found, str):
        raise UnreadablePicture(REASONS[found])
    return [str(text) for text in found]


def _run_decoder(picture: bytes) -> bytes:
    """Run the decoder to its end and return its output. The decoder gets none of our settings."""
    command = [sys.executable, "-I", str(DECODER)]
    try:
        return subprocess.run(  # noqa: S603 (our own program)
            command, input=picture, stdout=subprocess.PIPE, env={}, timeout=TIMEOUT_SECONDS, check=True
        ).stdout
    except subprocess.TimeoutExpired:
        raise UnreadablePicture(TOO_SLOW) from None
    except subprocess.CalledProcessError as error:
        raise UnreadablePicture(TOO_SLOW if error.returncode in KILL_SIGNALS else FAILED) from None
