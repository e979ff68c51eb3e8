"""The QR code on a picture of a slip. Strangers draw these pictures, so size, time and number are bounded."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

READER = Path(__file__).with_name("slip_reader.py")
MOST_BYTES = 5_000_000
SECONDS = 8.0
"""What a picture may take by the clock: the reader's limit of CPU comes first, unless the machine is busy."""
KILLED = {-signal.SIGXCPU, -signal.SIGKILL}
BUSY = "Another picture is being read. Try again in a few seconds."
TOO_SLOW = "The picture takes too long to read. Crop it to the QR code."
FAILED = "The picture cannot be read. Crop it to the QR code."
_one_at_a_time = threading.Lock()


class NotReadable(Exception):
    """No QR code could be read; the message is a sentence for staff."""


def texts(picture: bytes) -> list[str]:
    """What the QR codes on a PNG, JPEG or WebP say, at least one. Raises NotReadable."""
    if len(picture) > MOST_BYTES:
        raise NotReadable("The picture has more than 5 MB.")
    if not _one_at_a_time.acquire(blocking=False):
        raise NotReadable(BUSY)
    try:
        found = json.loads(_printed(picture))
    finally:
        _one_at_a_time.release()
    if isinstance(found, str):
        raise NotReadable(found)
    return [str(text) for text in found]


def _printed(picture: bytes) -> bytes:
    """What the reader says. It gets none of our settings, and it is gone when this returns or raises."""
    command = [sys.executable, "-I", str(READER)]
    try:
        return subprocess.run(  # noqa: S603 (our own program)
            command, input=picture, stdout=subprocess.PIPE, env={}, timeout=SECONDS, check=True
        ).stdout
    except subprocess.TimeoutExpired:
        raise NotReadable(TOO_SLOW) from None
    except subprocess.CalledProcessError as ended:
        raise NotReadable(TOO_SLOW if ended.returncode in KILLED else FAILED) from None
