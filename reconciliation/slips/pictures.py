"""Read the QR code of a slip's picture. Pictures come from strangers: size, time and number are limited."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from django.utils.translation import gettext_lazy as _

from core import uploads

DECODER = Path(__file__).with_name("decode_picture.py")
LOCKS = Path(tempfile.gettempdir())
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


class Sender(StrEnum):
    """Who sends a picture. A machine reads one of each at once: payers do not keep staff waiting.

    So decoders take twice `decode_picture.MAX_MEMORY_BYTES` of its memory at most. The chart counts them.
    """

    STAFF = "staff"
    PAYER = "payer"


class UnreadablePicture(Exception):
    """No QR code could be read; the message says why."""


def read_qr_codes(picture: bytes, sender: Sender = Sender.STAFF) -> list[str]:
    """The texts of the QR codes on a PNG, JPEG or WebP, at least one. Raises UnreadablePicture."""
    if len(picture) > MAX_BYTES:
        raise UnreadablePicture(TOO_MANY_BYTES)
    try:
        with slot_of(sender) as slot:
            found = json.loads(_run_decoder(picture, slot))
    except BlockingIOError:
        raise UnreadablePicture(BUSY) from None
    if isinstance(found, str):
        raise UnreadablePicture(REASONS[found])
    return [str(text) for text in found]


@contextmanager
def slot_of(sender: Sender) -> Iterator[int]:
    """Hold the lock of a file, which all processes of the machine share. Raises BlockingIOError."""
    path = LOCKS / f"thaiqr-{os.getuid()}-picture-of-{sender}.lock"
    slot = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield slot
    finally:
        os.close(slot)


def _run_decoder(picture: bytes, slot: int) -> bytes:
    """Run the decoder to its end and return its output. The decoder gets none of our settings.

    It has the lock too, so it keeps it if this process is killed.
    """
    command = [sys.executable, "-I", str(DECODER)]
    try:
        return subprocess.run(  # noqa: S603 (our own program)
            command,
            input=picture,
            stdout=subprocess.PIPE,
            env={},
            pass_fds=(slot,),
            timeout=TIMEOUT_SECONDS,
            check=True,
        ).stdout
    except subprocess.TimeoutExpired:
        raise UnreadablePicture(TOO_SLOW) from None
    except subprocess.CalledProcessError as error:
        raise UnreadablePicture(TOO_SLOW if error.returncode in KILL_SIGNALS else FAILED) from None
