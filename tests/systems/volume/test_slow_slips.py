"""Slips whose pictures take long to decode wait for each other."""

import io
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from PIL import Image

from core import decoders
from core.slips import Slip, slip_payload
from qrcodes import images
from reconciliation.slips import pictures
from reconciliation.slips.pictures import UnreadablePicture

PAGE = "/admin/reconciliation/slipcheck/check/"
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pictures_may_take_long")]


def check(client: Client, text: str, **fields: Any) -> str:
    """Return the page after a text was checked."""
    answer = client.post(PAGE, {"text": text} | fields)
    assert answer.status_code == 200
    return answer.content.decode()


# --- pictures drawn to harm, and pictures that are hard to read -----------------------------------------


SLIP = slip_payload(Slip("014", "A1B2C3D4E5F6A7B8C9D0"))


def written(image: Image.Image, form: str = "PNG") -> bytes:
    file = io.BytesIO()
    image.save(file, form)
    return file.getvalue()


def trap(side: int = 4995) -> bytes:
    """Return a picture full of corner marks of QR codes: every three of them may be a code."""
    mark = Image.new("1", (9, 9), 1)
    for x in range(7):
        for y in range(7):
            mark.putpixel((x + 1, y + 1), max(abs(x - 3), abs(y - 3)) == 2)
    picture = Image.new("1", (side, side))
    for x in range(0, side, 9):
        picture.paste(mark, (x, 0))
    row = picture.crop((0, 0, side, 9))
    for y in range(0, side, 9):
        picture.paste(row, (0, y))
    return written(picture)


def refusal_of(picture: bytes) -> str:
    with pytest.raises(UnreadablePicture) as refused:
        pictures.read_qr_codes(picture)
    return str(refused.value)


def running() -> set[str]:
    """Return the ids of the decoder processes that still run."""
    children = Path("/proc/self/task").glob("*/children")
    begun = {pid for each in children for pid in each.read_text().split()}
    return {pid for pid in begun if b"decode_picture" in Path(f"/proc/{pid}/cmdline").read_bytes()}


@pytest.mark.slow
def test_slow_slip_pictures_time_out_and_are_decoded_one_at_a_time() -> None:
    files = [trap()] * 9
    assert len(files[0]) < 20_000
    before = os.times()
    with ThreadPoolExecutor(len(files)) as pool:
        refusals = Counter(pool.map(refusal_of, files))
    after = os.times()
    assert refusals == {pictures.TOO_SLOW: 1, pictures.BUSY: 8}
    assert after.children_user - before.children_user < decoders.PICTURE_OF_STAFF.cpu_seconds + 1
    assert not running()
    assert pictures.read_qr_codes(images.png(SLIP)) == [SLIP]
