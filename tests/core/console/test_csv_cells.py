"""Cells of CSV files: quoted, and never a formula."""

import csv
import io

import pytest

from core.console.csv_cells import escape_cell, unescape_cell, writer


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("order-17", "order-17"),
        ("a=b", "a=b"),
        ("=1+1", "'=1+1"),
        ("-5", "'-5"),
        ("x;=1+1;@y", "x;'=1+1;'@y"),
        ("＝1+1", "'＝1+1"),
        ("", ""),
    ],
)
def test_formula_is_escaped_at_the_start_and_behind_a_semicolon(text: str, escaped: str) -> None:
    assert escape_cell(text) == escaped
    assert unescape_cell(escaped) == text


def test_every_cell_of_a_csv_is_quoted() -> None:
    file = io.StringIO(newline="")
    cells = ["a;b", 'x"y', 100, None, "l1\nl2"]
    writer(file).writerow(cells)
    assert file.getvalue() == '"a;b","x""y","100","","l1\nl2"\r\n'
    assert next(csv.reader(io.StringIO(file.getvalue(), newline=""))) == ["a;b", 'x"y', "100", "", "l1\nl2"]
