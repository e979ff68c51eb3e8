"""Documents to print: A4 pages with a title, tables and page numbers, in Thai and in English.

The same input gives the same bytes. Import this module only where a document is made: its library takes half
a second and 40 MB, which a process that makes none should not pay.
"""

import io
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from fpdf import FPDF

from core import qr_symbols
from core.outlines import FONT_FILES

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


class Document:
    """A document that grows from the top to the bottom."""

    def __init__(self, title: str, *, at: datetime, language: str) -> None:
        """`at` is the date of the document in its properties."""
        self._pages = _Pages(title)
        self._pages.set_title(title)
        self._pages.set_lang(language)
        self._pages.set_creation_date(at)
        self._pages.add_page()
        self._rows = 0
        self.heading(title, size=18)

    def heading(self, text: str, *, size: int = 13, room: float = 0) -> None:
        """A line in bold. A new page begins unless `room` millimetres are left below it."""
        self._keep(LINE + room)
        self._pages.ln(2)
        self._write(text, size=size, bold=True)

    def line(self, text: str, *, bold: bool = False, small: bool = False) -> None:
        """A paragraph."""
        self._write(text, size=SMALL if small else TEXT, bold=bold)

    def facts(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Names and values, one pair a line. Long values go on below."""
        for name, value in pairs:
            self._keep(2 * LINE)
            self._pages.put(name, 58, ROW, color=GREY)
            self._pages.paragraph(value, ROW)

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str]], *, has_sum: bool) -> None:
        """A table whose head is repeated on each page. `has_sum`: the last row is in bold.

        Raises TooManyRows.
        """
        found = list(rows)
        self._rows += len(found)
        if self._rows > MAX_ROWS:
            raise TooManyRows
        self._row(columns, [column.label for column in columns], is_head=True)
        for number, row in enumerate(found, 1):
            if self._pages.will_page_break(ROW):
                self._pages.add_page()
                self._row(columns, [column.label for column in columns], is_head=True)
            self._row(columns, row, bold=has_sum and number == len(found))
        self._pages.ln(2)

    def qr_code(self, text: str, *, side: float) -> None:
        """A QR code with sides of `side` millimetres, without its quiet zone."""
        self._keep(side + LINE)
        matrix = qr_symbols.modules(text, has_quiet_zone=False)
        module = side / len(matrix)
        left, top = self._pages.l_margin + 2, self._pages.get_y() + 2
        self._pages.set_fill_color(0, 0, 0)
        for y, line in enumerate(matrix):
            for x, is_dark in enumerate(line):
                if is_dark:
                    self._pages.rect(left + x * module, top + y * module, module, module, style="F")
        self._pages.set_y(top + side + 4)

    def content(self) -> bytes:
        """The file. The document must not be changed afterwards."""
        return bytes(self._pages.output())

    def _row(
        self, columns: Sequence[Column], cells: Sequence[str], *, bold: bool = False, is_head: bool = False
    ) -> None:
        self._pages.set_style(TEXT - 1, bold=bold or is_head)
        for column, text in zip(columns, cells, strict=True):
            width = column.share * self._pages.epw
            self._pages.put(
                text, width, ROW, is_right=column.is_number, fill=SHADE if is_head else None, border="B"
            )
        self._pages.ln(ROW)

    def _write(self, text: str, *, size: int, bold: bool) -> None:
        self._pages.set_style(size, bold=bold)
        self._pages.paragraph(text, size * 0.6)
        self._pages.set_style(TEXT)

    def _keep(self, height: float) -> None:
        """Begin a new page unless `height` fits on this one."""
        if self._pages.will_page_break(height):
            self._pages.add_page()


class _Pages(FPDF):
    """A4 pages with their number below."""

    def __init__(self, title: str) -> None:
        super().__init__(format="A4")
        self._title = title
        self.add_font(FONT, "", FONT_FILES[False])
        self.add_font(FONT, "B", FONT_FILES[True])
        self._hold_fonts()
        self.set_margins(MARGIN, MARGIN)
        self.set_auto_page_break(True, margin=MARGIN + LINE)
        self.set_style(TEXT)

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
        self.set_style(SMALL)
        self.put(self._title, self.epw / 2, LINE, color=GREY)
        self.put(f"{self.page_no()} / {{nb}}", self.epw / 2, LINE, color=GREY, is_right=True)

    def set_style(self, size: int, *, bold: bool = False) -> None:
        self.set_font(FONT, "B" if bold else "", size)

    def put(
        self,
        text: str,
        width: float,
        height: float,
        *,
        is_right: bool = False,
        color: tuple[int, int, int] = DARK,
        fill: tuple[int, int, int] | None = None,
        border: str = "",
    ) -> None:
        """One cell of a line. A text that is too long is cut."""
        self._shape(text)
        self.set_text_color(*color)
        self.set_draw_color(*SHADE)
        if fill:
            self.set_fill_color(*fill)
        text = text if is_right else self._cut(_one_line(text), width)
        self.cell(width, height, text, border=border or 0, align="R" if is_right else "L", fill=bool(fill))

    def paragraph(self, text: str, height: float) -> None:
        """A text from here to the right margin, on as many lines as it needs. The next one begins below."""
        self._shape(text)
        self.set_text_color(*DARK)
        self.multi_cell(0, height, _one_line(text), align="L", new_x="LMARGIN", new_y="NEXT")

    def _shape(self, text: str) -> None:
        """Place the vowels and tone marks of Thai. Plain ASCII is written five times faster without."""
        self.set_text_shaping(not text.isascii())

    def _cut(self, text: str, width: float) -> str:
        room = width - 2 * self.c_margin
        if self.get_string_width(text) <= room:
            return text
        while text and self.get_string_width(f"{text}…") > room:
            text = text[:-1]
        return f"{text}…"


def _one_line(text: str) -> str:
    return " ".join(text.split())
