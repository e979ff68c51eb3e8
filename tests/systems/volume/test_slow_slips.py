"""Slips whose pictures take long to decode wait for each other."""

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from PIL import Image

from core.work import decoders
from qrcodes import images
from reconciliation.slips import pictures
from tests.reconciliation.slips.test_slip_check import SLIP, refusal_of, running, written

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pictures_may_take_long")]


# --- pictures drawn to harm, and pictures that are hard to read -----------------------------------------


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
