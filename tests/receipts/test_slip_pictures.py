"""Pictures of slips that are drawn to harm, and those that only look hard."""

import io
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image

from core.slips import Slip, slip_payload
from qrcodes import images
from receipts import slip_pictures, slip_reader
from receipts.slip_pictures import NotReadable

SLIP = slip_payload(Slip("014", "A1B2C3D4E5F6A7B8C9D0"))
pytestmark = pytest.mark.usefixtures("pictures_may_take_long")


def written(image: Image.Image, form: str = "PNG") -> bytes:
    file = io.BytesIO()
    image.save(file, form)
    return file.getvalue()


def trap(side: int = 4995) -> bytes:
    """Nothing but the corner marks of QR codes, 9 pixels wide: every three of them may be a code."""
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


def photograph(width: int, height: int, code_width: int) -> bytes:
    """A grainy photograph of a slip with a code that is small and not straight."""
    picture = Image.effect_noise((width, height), 25)
    code = Image.open(io.BytesIO(images.png(SLIP))).convert("L").resize((code_width, code_width))
    picture.paste(code.rotate(4, expand=True, fillcolor=255), (width // 3, height // 2))
    return written(picture, "JPEG")


def refusal_of(picture: bytes) -> str:
    with pytest.raises(NotReadable) as refused:
        slip_pictures.texts(picture)
    return str(refused.value)


def readers() -> set[str]:
    """The processes that this one started and that are not gone."""
    children = Path("/proc/self/task").glob("*/children")
    begun = {pid for each in children for pid in each.read_text().split()}
    return {pid for pid in begun if b"slip_reader" in Path(f"/proc/{pid}/cmdline").read_bytes()}


def test_pictures_that_would_take_minutes_are_given_up_and_read_one_at_a_time() -> None:
    pictures = [trap()] * 9
    assert len(pictures[0]) < 20_000
    before = os.times()
    with ThreadPoolExecutor(len(pictures)) as pool:
        refusals = Counter(pool.map(refusal_of, pictures))
    after = os.times()
    assert refusals == {slip_pictures.TOO_SLOW: 1, slip_pictures.BUSY: 8}
    assert after.children_user - before.children_user < slip_reader.CPU_SECONDS + 1
    assert not readers()
    assert slip_pictures.texts(images.png(SLIP)) == [SLIP]


def test_a_picture_may_not_take_longer_than_the_clock_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slip_pictures, "SECONDS", 0.01)
    assert refusal_of(images.png(SLIP)) == slip_pictures.TOO_SLOW
    assert not readers()


def test_a_reader_that_fails_is_told_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = tmp_path / "reader.py"
    reader.write_text("raise MemoryError")
    monkeypatch.setattr(slip_pictures, "READER", reader)
    assert refusal_of(images.png(SLIP)) == slip_pictures.FAILED


def test_the_reader_knows_none_of_our_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = tmp_path / "reader.py"
    reader.write_text("import json, os; print(json.dumps(list(os.environ)))")
    monkeypatch.setenv("SECRET_KEY", "x")
    monkeypatch.setattr(slip_pictures, "READER", reader)
    assert "SECRET_KEY" not in slip_pictures.texts(b"")


@pytest.mark.parametrize("code_width", [150, 400, 1200])
def test_a_large_photograph_of_a_small_code_is_read(code_width: int) -> None:
    assert slip_pictures.texts(photograph(3000, 4000, code_width)) == [SLIP]


@pytest.mark.parametrize(
    ("size", "words"), [((65_535, 40), slip_reader.NOTHING), ((65_536, 1), slip_reader.TOO_LARGE)]
)
def test_a_picture_far_wider_than_high_is_no_fault_of_ours(size: tuple[int, int], words: str) -> None:
    assert refusal_of(written(Image.new("1", size))) == words
