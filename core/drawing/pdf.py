"""Documents to print: A4 pages with a title, tables and page numbers, in Thai and in English.

The same input gives the same bytes. Import this module only where a document is made: its library takes half
a second and 40 MB, which a process that makes none should not pay.
"""

import io
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fpdf import FPDF

from core.drawing import qr_symbols
from core.drawing.outlines import FONT_FILES

FONT = "Sarabun"
CONTENT_TYPE = "application/pdf"
# 7.4 s of CPU, with a Thai name for every five rows.
MAX_ROWS = 5_000
# Millimetres and points.
MARGIN, LINE, ROW, TEXT, SMALL = 15.0, 6.0, 5.5, 10, 8
GREY, DARK, SHADE = (100, 100, 100), (20, 20, 20), (238, 240, 243)

# Both write a line for each character that a font lacks, and for each table of a font.
for _name in ("fpdf", "fontTools"):
    logging.getLogger(_name).setLevel(logging.ERROR)


class TooManyRows(Exception):
    """The tables of a document have more than MAX_ROWS rows."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `share` is its part of the width of the page; numbers stand at the right."""

    label: str
    share: float
    is_number: bool = False


class Document(FPDF):
    """A document that grows from the top to the bottom, on A4 pages with their number below.

    Shaping places the vowels and tone marks of Thai. Plain ASCII is written five times faster without.
    """

    def __init__(self, title: str, *, at: datetime, language: str) -> None:
        """`at` is the date of the document in its properties."""
        super().__init__(format="A4")
        for is_bold, file in FONT_FILES.items():
            self.add_font(FONT, "B" if is_bold else "", file)
        self._hold_fonts()
        self.set_margins(MARGIN, MARGIN)
        self.set_auto_page_break(True, margin=MARGIN + LINE)
        self.set_title(title)
        self.set_lang(language)
        self.set_creation_date(at)
        self.set_draw_color(*SHADE)
        self._row_count = 0
        self.add_page()
        self.heading(title, size=18)

    def _hold_fonts(self) -> None:
        """Keep the fonts in memory. Otherwise their files stay open until the garbage collector runs."""
        for font in self.fonts.values():
            reader = getattr(font, "ttfont").reader  # noqa: B009  only fonts from files have it
            reader.file.seek(0)
            held = io.BytesIO(reader.file.read())
            reader.file.close()
            reader.file = held

    def footer(self) -> None:
        self.set_y(-MARGIN)
        self._set_style(SMALL, color=GREY)
        self._put(str(self.title), self.epw / 2, LINE)
        self._put(f"{self.page_no()} / {{nb}}", self.epw / 2, LINE, align="R")

    def heading(self, text: str, *, size: int = 13, room: float = 0) -> None:
        """A line in bold. A new page begins unless `room` millimetres are left below it."""
        self._keep(LINE + room)
        self.ln(2)
        self._set_style(size, bold=True)
        self._wrap(text, size * 0.6)

    def add_line(self, text: str, *, bold: bool = False, small: bool = False) -> None:
        size = SMALL if small else TEXT
        self._set_style(size, bold=bold)
        self._wrap(text, size * 0.6)

    def facts(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Names and values, one pair a line. Long values go on below."""
        for name, value in pairs:
            self._keep(2 * LINE)
            self._set_style(TEXT, color=GREY)
            self._put(name, 58, ROW)
            self._set_style(TEXT)
            self._wrap(value, ROW)

    def add_rows(self, columns: Sequence[Column], rows: Iterable[Sequence[str]], *, has_sum: bool) -> None:
        """A table with its head on each page. `has_sum`: the last row is in bold. Raises TooManyRows."""
        found, head = list(rows), [column.label for column in columns]
        self._row_count += len(found)
        if self._row_count > MAX_ROWS:
            raise TooManyRows
        self._row(columns, head, is_head=True)
        for number, row in enumerate(found, 1):
            if self.will_page_break(ROW):
                self.add_page()
                self._row(columns, head, is_head=True)
            self._row(columns, row, bold=has_sum and number == len(found))
        self.ln(2)

    def qr_code(self, text: str, *, side: float) -> None:
        """A QR code with sides of `side` millimetres, without its quiet zone."""
        self._keep(side + LINE)
        matrix = qr_symbols.modules(text, has_quiet_zone=False)
        module = side / len(matrix)
        left, top = self.l_margin + 2, self.get_y() + 2
        self.set_fill_color(0, 0, 0)
        for y, line in enumerate(matrix):
            for x, is_dark in enumerate(line):
                if is_dark:
                    self.rect(left + x * module, top + y * module, module, module, style="F")
        self.set_y(top + side + 4)

    def _row(
        self, columns: Sequence[Column], cells: Sequence[str], *, bold: bool = False, is_head: bool = False
    ) -> None:
        self._set_style(TEXT - 1, bold=bold or is_head)
        self.set_fill_color(*SHADE)
        for column, text in zip(columns, cells, strict=True):
            align = "R" if column.is_number else "L"
            self._put(text, column.share * self.epw, ROW, align=align, fill=is_head, border="B")
        self.ln(ROW)

    def _keep(self, height: float) -> None:
        """Begin a new page unless `height` fits on this one."""
        if self.will_page_break(height):
            self.add_page()

    def _set_style(self, size: int, *, bold: bool = False, color: tuple[int, int, int] = DARK) -> None:
        self.set_font(FONT, "B" if bold else "", size)
        self.set_text_color(*color)

    def _put(self, text: str, width: float, height: float, *, align: str = "L", **options: Any) -> None:
        """One cell of a line. A text on the left that is too long is cut, a number is not."""
        self.set_text_shaping(not text.isascii())
        if align == "L":
            text = self._cut(" ".join(text.split()), width)
        self.cell(width, height, text, align=align, **options)

    def _wrap(self, text: str, height: float) -> None:
        """A text from here to the right margin, on as many lines as it needs. The next one begins below."""
        self.set_text_shaping(not text.isascii())
        self.multi_cell(0, height, " ".join(text.split()), align="L", new_x="LMARGIN", new_y="NEXT")

    def _cut(self, text: str, width: float) -> str:
        room = width - 2 * self.c_margin
        if self.get_string_width(text) <= room:
            return text
        while text and self.get_string_width(f"{text}…") > room:
            text = text[:-1]
        return f"{text}…"
