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
from reconciliation.slips import decode_picture, pictures
from reconciliation.slips.pictures import UnreadablePicture

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
    with pytest.raises(UnreadablePicture) as refused:
        pictures.read_qr_codes(picture)
    return str(refused.value)


def decoders() -> set[str]:
    """The processes that this one started and that are not gone."""
    children = Path("/proc/self/task").glob("*/children")
    begun = {pid for each in children for pid in each.read_text().split()}
    return {pid for pid in begun if b"decode_picture" in Path(f"/proc/{pid}/cmdline").read_bytes()}


@pytest.mark.slow
def test_slow_pictures_time_out_and_are_read_one_at_a_time() -> None:
    files = [trap()] * 9
    assert len(files[0]) < 20_000
    before = os.times()
    with ThreadPoolExecutor(len(files)) as pool:
        refusals = Counter(pool.map(refusal_of, files))
    after = os.times()
    assert refusals == {pictures.TOO_SLOW: 1, pictures.BUSY: 8}
    assert after.children_user - before.children_user < decode_picture.MAX_CPU_SECONDS + 1
    assert not decoders()
    assert pictures.read_qr_codes(images.png(SLIP)) == [SLIP]


def test_decoding_a_picture_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "TIMEOUT_SECONDS", 0.01)
    assert refusal_of(images.png(SLIP)) == pictures.TOO_SLOW
    assert not decoders()


def test_crash_of_the_decoder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = tmp_path / "reader.py"
    decoder.write_text("raise MemoryError")
    monkeypatch.setattr(pictures, "DECODER", decoder)
    assert refusal_of(images.png(SLIP)) == pictures.FAILED


def test_decoder_process_gets_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = tmp_path / "reader.py"
    decoder.write_text("import json, os; print(json.dumps(list(os.environ)))")
    monkeypatch.setenv("SECRET_KEY", "x")
    monkeypatch.setattr(pictures, "DECODER", decoder)
    assert "SECRET_KEY" not in pictures.read_qr_codes(b"")


@pytest.mark.parametrize("code_width", [150, 400, 1200])
@pytest.mark.slow
def test_small_code_on_a_large_photograph_is_read(code_width: int) -> None:
    assert pictures.read_qr_codes(photograph(3000, 4000, code_width)) == [SLIP]


@pytest.mark.parametrize(
    ("size", "words"), [((65_535, 40), decode_picture.NO_QR_CODE), ((65_536, 1), decode_picture.TOO_LARGE)]
)
def test_extremely_wide_picture_is_refused(size: tuple[int, int], words: str) -> None:
    assert refusal_of(written(Image.new("1", size))) == words
