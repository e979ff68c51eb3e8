"""Read the QR code of a slip's picture. Pictures come from strangers: size, time and number are limited."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

from django.utils.translation import gettext_lazy as _

DECODER = Path(__file__).with_name("decode_picture.py")
MAX_BYTES = 5_000_000
TIMEOUT_SECONDS = 8.0  # the decoder's CPU limit comes first, unless the machine is busy
KILL_SIGNALS = {-signal.SIGXCPU, -signal.SIGKILL}
BUSY = _("Another picture is being read. Try again in a few seconds.")
TOO_SLOW = _("The picture takes too long to read. Crop it to the QR code.")
FAILED = _("The picture cannot be read. Crop it to the QR code.")
_one_picture_at_a_time = threading.Lock()


class UnreadablePicture(Exception):
    """No QR code could be read; the message tells staff why."""


def read_qr_codes(picture: bytes) -> list[str]:
    """The texts of the QR codes on a PNG, JPEG or WebP, at least one. Raises UnreadablePicture."""
    if len(picture) > MAX_BYTES:
        raise UnreadablePicture(_("The picture has more than 5 MB."))
    if not _one_picture_at_a_time.acquire(blocking=False):
        raise UnreadablePicture(BUSY)
    try:
        found = json.loads(_run_decoder(picture))
    finally:
        _one_picture_at_a_time.release()
    if isinstance(found, str):
        raise UnreadablePicture(found)
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
