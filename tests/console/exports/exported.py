"""Exports as staff ask for them. The test calls the worker."""

import csv
import gzip
import io
import zipfile
from typing import Any

from django.test import Client
from python_calamine import CalamineWorkbook

from console.exports import jobs
from console.models import Export

PAGE = "/admin/exports/"
ASKED = {"list": "payments.payment", "query": "", "file_type": "csv"}


def ask(client: Client, language: str = "en", file_language: str = "", **changes: Any) -> Export:
    """Changes are of the form: list, query, file_type. language: of the page."""
    body = ASKED | changes | {"language": file_language}
    answer = client.post(PAGE, body, headers={"accept-language": language})
    assert answer.status_code == 302
    return Export.objects.latest("pk")


def content(client: Client, export: Export) -> bytes:
    """The file of an export, as a browser unpacks it."""
    answer = client.get(f"{PAGE}{export.pk}/")
    assert answer.status_code == 200, answer.content
    return gzip.decompress(answer.content) if answer.has_header("Content-Encoding") else answer.content


def written(client: Client, **asked: Any) -> bytes:
    """The file of a new export."""
    export = ask(client, **asked)
    assert jobs.run_due() == 1
    return content(client, export)


def rows_of(file: bytes) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    text = file.decode()
    assert text.startswith("\ufeff"), "Excel reads UTF-8 only after a byte order mark"
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


def sheet_of(file: bytes) -> str:
    """The XML of the only sheet of a workbook."""
    with zipfile.ZipFile(io.BytesIO(file)) as book:
        return book.read("xl/worksheets/sheet1.xml").decode()


def sheets_of(file: bytes) -> dict[str, list[list[Any]]]:
    """The rows of each sheet of a workbook."""
    book = CalamineWorkbook.from_filelike(io.BytesIO(file))
    return {name: book.get_sheet_by_name(name).to_python() for name in book.sheet_names}


def archive_of(file: bytes) -> dict[str, list[list[str]]]:
    """The rows of each CSV file of an archive."""
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        texts = {name: archive.read(name).decode("utf-8-sig") for name in archive.namelist()}
    return {name: list(csv.reader(io.StringIO(text, newline=""))) for name, text in texts.items()}
