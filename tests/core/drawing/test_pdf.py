"""Documents to print: pages, tables, Thai text, and the same bytes for the same input."""

import io
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pypdfium2
import pytest
from pypdf import PdfReader

from core.drawing import pdf
from core.drawing.pdf import Column, Document, TooManyRows

AT = datetime(2026, 11, 30, 17, tzinfo=UTC)
COLUMNS = [Column("Name", 0.7), Column("Amount", 0.3, is_number=True)]
# Tone marks stand above vowels, and marks move aside for the tail of the letter.
THAI = "ร้านกาแฟที่นี่ ญี่ปุ่น ผู้ป่วย น้ำ"


def document(title: str = "Report") -> Document:
    return Document(title, at=AT, language="th")


def with_rows(count: int) -> Document:
    made = document()
    made.add_rows(COLUMNS, [[f"row {number}", f"{number}.00"] for number in range(count)], has_sum=False)
    return made


def texts(content: bytes | bytearray) -> list[str]:
    return [page.extract_text() for page in PdfReader(io.BytesIO(content)).pages]


def ink(text: str) -> tuple[int, int, int, int] | None:
    """The box of what is printed below the title."""
    made = document("")
    made.add_line(text)
    [page] = pypdfium2.PdfDocument(bytes(made.output()))
    image = page.render(scale=4).to_pil().convert("L").crop((0, 0, 2380, 400))
    box: tuple[int, int, int, int] | None = image.point(lambda shade: 255 * (shade < 128)).getbbox()
    return box


@pytest.mark.slow
def test_same_input_gives_the_same_bytes() -> None:
    assert with_rows(60).output() == with_rows(60).output()


def test_date_of_a_document_is_the_one_that_it_is_given() -> None:
    metadata = PdfReader(io.BytesIO(document().output())).metadata
    assert metadata is not None
    assert metadata.creation_date == AT


@pytest.mark.slow
def test_each_page_has_its_number_and_the_head_of_the_table() -> None:
    pages = texts(with_rows(100).output())
    assert len(pages) == 3
    for number, page in enumerate(pages, 1):
        assert f"{number} / 3" in page
        assert "Name Amount" in page


@pytest.mark.slow
def test_no_row_is_lost_between_pages() -> None:
    found = "\n".join(texts(with_rows(100).output())).splitlines()
    assert [line for line in found if line.startswith("row ")] == [f"row {n} {n}.00" for n in range(100)]


def test_thai_text_can_be_copied() -> None:
    made = document()
    made.add_line(THAI)
    assert "ร้านกาแฟที่นี่" in texts(made.output())[0]


@pytest.mark.slow
def test_tone_marks_stand_above_vowels() -> None:
    """Without shaping, the tone mark of the second text covers the vowel of both."""
    vowel, both = ink("ที"), ink("ที่")
    assert vowel is not None
    assert both is not None
    assert both[1] < vowel[1] - 4
    assert both[2] == vowel[2]


@pytest.mark.slow
def test_long_text_of_a_cell_is_cut_and_numbers_are_not() -> None:
    made = document()
    made.add_rows(COLUMNS, [["ก" * 300, "1,234,567,890,123.00"]], has_sum=True)
    [page] = texts(made.output())
    assert "…" in page
    assert "1,234,567,890,123.00" in page


@pytest.mark.parametrize("text", ["", "a\nb\tc", "\0\x1b", "😀 店", "{nb}", "**bold** <b>", "א", "\u202eabc"])
def test_any_text_can_be_printed(text: str) -> None:
    made = document(text)
    made.heading(text)
    made.facts([(text, text * 50)])
    made.add_rows(COLUMNS, [[text, "1.00"]], has_sum=True)
    assert texts(made.output())


def test_document_has_a_limit_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "MAX_ROWS", 5)
    made = with_rows(3)
    with pytest.raises(TooManyRows):
        made.add_rows(COLUMNS, [["a", "1"]] * 3, has_sum=False)


@pytest.mark.slow
def test_processes_that_make_no_document_do_not_import_the_library() -> None:
    code = """
import os, sys, django
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()
import config.celery, config.urls
from django.urls import reverse
reverse("admin:monthly_report")
config.celery.app.loader.import_default_modules()
print(sorted({"core.drawing.pdf", "fpdf", "fontTools", "uharfbuzz"} & set(sys.modules)))
"""
    root = Path(__file__).parents[3]
    found = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
