"""Programs that unpack files of strangers: their limits, and one budget for a machine."""

import json
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from core.work import decoders
from core.work.decoders import DecoderFailed, Place
from tests.stack import ROOT

CHART = ROOT / "deploy/helm/thai-qr-payments/values.yaml"
USES = {
    "in a loop": ("while True: pass", True),
    "too much memory": ("b'x' * 300_000_000", False),
    "too much output": ("import sys; sys.stdout.write('x' * 2_000_000); sys.stdout.flush()", False),
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(decoders, "LOCKS", tmp_path)
    return Place("test", 200_000_000, 1, 60.0, 1_000_000)


def run(code: str, place: Place, folder: Path) -> bytes:
    program = folder / "decoder.py"
    program.write_text(code)
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as printed:
        decoders.run(program, place, source, printed)
        printed.seek(0)
        return printed.read()


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_decoder_over_a_limit_ends(use: str, place: Place, tmp_path: Path) -> None:
    code, is_killed = USES[use]
    with pytest.raises(DecoderFailed) as failed:
        run(code, place, tmp_path)
    assert failed.value.is_over_limit == is_killed
    assert run("print(1)", place, tmp_path) == b"1\n"


@pytest.mark.slow
def test_decoder_gets_no_variable_and_no_file_of_the_process_that_runs_it(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "canary")
    with (tmp_path / "open").open("w") as inherited:
        os.set_inheritable(inherited.fileno(), True)
        code = "import json, os; print(json.dumps([dict(os.environ), os.listdir('/proc/self/fd')]))"
        variables, files = json.loads(run(code, place, tmp_path))
    assert variables.keys() <= {"LC_CTYPE"}  # Python sets it
    assert len(files) == 5  # its input, output, errors, lock, and the list of these itself


@pytest.mark.slow
def test_picture_that_takes_its_decoder_over_cannot_read_the_variables_of_its_parent(
    place: Place, tmp_path: Path
) -> None:
    decoder = ROOT / "reconciliation" / "slips" / "decode_picture.py"
    takes_over = "Image.open = lambda *given, **more: print(open(f'/proc/{os.getppid()}/environ').read())"
    runs = f"runpy.run_path({str(decoder)!r}, run_name='__main__')"
    code = f"import os, runpy\nfrom PIL import Image\n{takes_over}\n{runs}"
    assert run(code, place, tmp_path) == b'"not_a_picture"'


@pytest.mark.slow
def test_place_is_taken_by_one_decoder_and_others_may_wait(place: Place, tmp_path: Path) -> None:
    found: list[bytes] = []
    patient = replace(place, wait_seconds=60.0)
    waiting = Thread(target=lambda: found.append(run("print(1)", patient, tmp_path)))
    with place.taken():
        for impatient in (place, replace(place, wait_seconds=0.2)):
            with pytest.raises(BlockingIOError):
                run("print(1)", impatient, tmp_path)
        waiting.start()
        assert found == []
    waiting.join(60)
    assert found == [b"1\n"]


def test_chart_has_room_for_the_decoders_of_each_pod() -> None:
    """Web reads pictures and workbooks, the worker of the queue `default` imports workbooks."""
    values = yaml.safe_load(CHART.read_text())
    budget = sum(place.memory_bytes for place in decoders.BUDGET)
    assert room_of(values["web"]) >= budget
    assert room_of(values["workers"]["default"]) >= decoders.WORKBOOK.memory_bytes


def room_of(pod: dict[str, Any]) -> int:
    """Bytes between what a pod asks for and its limit."""
    limit, request = (pod["resources"][name]["memory"].removesuffix("Mi") for name in ("limits", "requests"))
    return (int(limit) - int(request)) * 2**20


def test_each_decoder_of_the_project_has_a_place() -> None:
    """No other module starts a program for a file."""
    programs = {path.name for path in ROOT.glob("reconciliation/**/decode_*.py")}
    users = [path for path in ROOT.glob("reconciliation/**/*.py") if "subprocess" in path.read_text()]
    assert programs == {"decode_picture.py", "decode_xlsx.py"}
    assert users == []
