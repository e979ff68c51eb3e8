"""`thaiqr lint`: what is wrong with a payment code, given as text or as a picture."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import zxingcpp
from PIL import Image, UnidentifiedImageError
from rich.text import Text

from thaiqr import linting
from thaiqr.cli.exits import Exit
from thaiqr.cli.output import Output
from thaiqr.cli.session import AsJson
from thaiqr.linting import Level, Report

COLOURS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "dim"}
LONGEST_VALUE = 40
MAX_PIXELS = 40_000_000
NAME_LENGTH = 255
"""Longer texts cannot name a file."""
QrArgument = Annotated[
    str,
    typer.Argument(metavar="QR", help="The text of a code, a picture or text file, or - for standard input."),
]


def lint(
    code: QrArgument,
    strict: Annotated[bool, typer.Option("--strict", help="Also end with 5 for warnings.")] = False,
    json: AsJson = False,
) -> None:
    """Say what is wrong with a payment code, and where. Ends with 5 if something is. Needs no key."""
    output = Output(json)
    try:
        reports = [linting.lint(text) for text in read_codes(code)]
    except (OSError, ValueError) as error:
        output.fail(str(error))
        raise typer.Exit(Exit.USAGE) from None
    for report in reports:
        output.data(as_json(report)) if json else _show(output, report)
    bad = {Level.ERROR, Level.WARNING} if strict else {Level.ERROR}
    if any(each.level in bad for report in reports for each in report.findings):
        raise typer.Exit(Exit.WRONG_PAYLOAD)


def read_codes(given: str) -> list[str]:
    """The codes in what was given. Raises OSError or ValueError if a file cannot be read."""
    if given == "-":
        return [sys.stdin.read()]
    if len(given) > NAME_LENGTH or not Path(given).is_file():
        return [given]
    try:
        return _scan(Path(given))
    except UnidentifiedImageError:
        return [Path(given).read_text(encoding="utf-8")]
    except (Image.DecompressionBombError, SyntaxError, EOFError) as error:
        raise ValueError(f"{given} is no picture that can be read: {error}") from None


def _scan(path: Path) -> list[str]:
    with Image.open(path) as picture:
        if picture.width * picture.height > MAX_PIXELS:
            raise ValueError(f"{path} is larger than {MAX_PIXELS // 1_000_000} megapixels.")
        found = zxingcpp.read_barcodes(picture.convert("L"))
    if not found:
        raise ValueError(f"No code was found on {path}. Is it sharp, with a light margin around it?")
    return [each.text for each in found]


def as_json(report: Report) -> dict[str, Any]:
    """A report for programs."""
    return {
        "payload": report.text,
        "kind": report.kind.name.lower(),
        "valid": report.is_valid,
        "fields": [
            {"tag": each.tag, "name": each.name, "value": each.value, "position": each.position}
            for each in report.elements
        ],
        "findings": [
            {"level": each.level, "tag": each.tag, "position": each.position, "message": each.message}
            for each in report.findings
        ],
    }


def _show(output: Output, report: Report) -> None:
    output.console.print(Text(f"{report.kind[0].upper()}{report.kind[1:]}", style="bold"), soft_wrap=True)
    for each in report.elements:
        indent = "  " if "." in each.tag else ""
        value = "" if each.is_template else each.value
        short = value if len(value) <= LONGEST_VALUE else value[: LONGEST_VALUE - 3] + "..."
        line = Text.assemble(
            (f"{each.position:>4}  ", "dim"), f"{indent + each.tag:<8}{each.name:<26} {short}"
        )
        output.console.print(line.plain.rstrip() if not output.console.color_system else line, soft_wrap=True)
    for found in report.findings:
        place = "" if found.position is None else f" at {found.position}"
        style = COLOURS[found.level]
        output.console.print(Text.assemble((f"{found.level}{place}: ", style), found.message))
    output.console.print(_verdict(report))


def _verdict(report: Report) -> Text:
    if not report.is_valid:
        return Text("The code is wrong.", style="red")
    warned = any(each.level is Level.WARNING for each in report.findings)
    return (
        Text("No errors, but see the warnings.", style="yellow")
        if warned
        else Text("No errors.", style="green")
    )
