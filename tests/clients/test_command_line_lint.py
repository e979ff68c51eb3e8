"""`thaiqr lint` reads texts, files and pictures, without a key and without a service."""

import json
from pathlib import Path

import pytest
import zxingcpp
from PIL import Image

from tests.clients.command_line import WIDTH, CommandLine
from tests.stack import ROOT

GOOD = (
    "00020101021230570016A00000067701011201153110400394751010206REF0010304REF253037645406555.55"
    "5802TH62100706SCB001630437C6"
)
WRONG = GOOD[:-4] + "0000"
DOUBTFUL = "00020101021129370016A0000006770101110113006600000000053037645802TH630456EA"


@pytest.fixture
def thaiqr(tmp_path: Path) -> CommandLine:
    return CommandLine("", "", tmp_path)


def picture(path: Path, text: str) -> Path:
    symbol = zxingcpp.create_barcode(text, zxingcpp.BarcodeFormat.QRCode)
    Image.fromarray(symbol.to_image(scale=6)).convert("RGB").save(path)
    return path


def test_good_code_ends_with_0_and_shows_its_fields(thaiqr: CommandLine) -> None:
    done = thaiqr("lint", GOOD)
    assert (done.code, done.stderr) == (0, "")
    for said in ("Thai bill payment", "Reference 1", "REF001", "555.55", "No errors."):
        assert said in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= WIDTH


def test_wrong_code_ends_with_5_and_says_where(thaiqr: CommandLine) -> None:
    done = thaiqr("lint", WRONG)
    assert done.code == 5
    assert f"error at {len(WRONG) - 8}: The checksum is 0000, but must be 37C6." in " ".join(
        done.stdout.split()
    )


def test_json_has_fields_and_findings(thaiqr: CommandLine) -> None:
    shown = thaiqr("lint", WRONG, "--json").json
    assert (shown["valid"], shown["kind"], shown["payload"]) == (False, "bill", WRONG)
    assert {"tag": "30.02", "name": "Reference 1", "value": "REF001", "position": 55} in shown["fields"]
    assert [(each["level"], each["tag"]) for each in shown["findings"]] == [("error", "63")]


def test_warnings_end_with_5_only_if_strict(thaiqr: CommandLine) -> None:
    warned = GOOD.replace("0115311040039475101", "0113311040039475101"[:4] + "3110400394751")
    assert thaiqr("lint", DOUBTFUL).code == 0
    assert thaiqr("lint", DOUBTFUL, "--strict").code == 0, "notes are no warnings"
    assert thaiqr("lint", warned, "--strict").code == 5


@pytest.mark.parametrize("name", ["code.png", "code.jpg", "โค้ด.webp"])
def test_picture_of_a_code_is_read(thaiqr: CommandLine, tmp_path: Path, name: str) -> None:
    assert thaiqr("lint", str(picture(tmp_path / name, GOOD)), "--json").json["payload"] == GOOD
    assert thaiqr("lint", str(picture(tmp_path / name, WRONG))).code == 5


def test_every_code_on_a_picture_is_read(thaiqr: CommandLine, tmp_path: Path) -> None:
    parts = [
        Image.open(picture(tmp_path / f"{number}.png", text)) for number, text in enumerate([GOOD, WRONG])
    ]
    both = Image.new("RGB", (sum(part.width for part in parts), parts[0].height), "white")
    both.paste(parts[0], (0, 0))
    both.paste(parts[1], (parts[0].width, 0))
    both.save(tmp_path / "both.png")
    done = thaiqr("lint", str(tmp_path / "both.png"), "--json")
    assert ({json.loads(line)["payload"] for line in done.stdout.splitlines()}, done.code) == (
        {GOOD, WRONG},
        5,
    )


@pytest.mark.slow
def test_text_file_and_standard_input_are_read(thaiqr: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "code.txt").write_text(f"{GOOD}\n")
    assert thaiqr("lint", str(tmp_path / "code.txt")).code == 0
    assert thaiqr("lint", "-", input=f"{GOOD}\n").code == 0


@pytest.mark.slow
def test_files_without_a_code_are_wrong_usage(thaiqr: CommandLine, tmp_path: Path) -> None:
    Image.new("L", (50, 50), 255).save(tmp_path / "white.png")
    (tmp_path / "binary").write_bytes(b"\xff\x00\xfe")
    Image.new("1", (10_000, 5_000)).save(tmp_path / "huge.png")
    for name, said in (("white.png", "No code"), ("binary", "decode"), ("huge.png", "megapixels")):
        done = thaiqr("lint", str(tmp_path / name))
        assert (done.code, done.stdout, said in done.stderr) == (2, "", True), done


def test_example_in_the_readme_is_what_lint_prints(thaiqr: CommandLine) -> None:
    readme = (ROOT / "clients" / "python" / "README.md").read_text()
    shown = readme.partition("```console\n$ thaiqr lint ")[2].partition("\n```")[0]
    code, _, printed = shown.partition("\n")
    assert [line.rstrip() for line in thaiqr("lint", code).stdout.splitlines()] == printed.splitlines()
