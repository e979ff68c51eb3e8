"""`thaiqr-server web` starts from any folder of the shell."""

import subprocess
import sys
from pathlib import Path

import pytest

from config import command_line
from tests.stack import ROOT

# Only root may become another user; others close the folder to themselves.
ENTER = """
import os, sys
from config import command_line
os.chdir(sys.argv[1])
os.setuid(65534) if os.geteuid() == 0 else os.chmod(".", 0)
command_line._leave_closed_folder()
print(os.getcwd())
"""


@pytest.mark.slow
def test_web_leaves_a_folder_that_its_user_cannot_enter(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    command = [sys.executable, "-c", ENTER, str(closed)]
    assert subprocess.check_output(command, cwd=ROOT, text=True).strip() == "/"


def test_web_leaves_a_folder_that_was_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    command_line._leave_closed_folder()
    assert Path.cwd() == Path("/")


def test_web_stays_in_a_folder_that_its_user_can_enter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command_line._leave_closed_folder()
    assert Path.cwd() == tmp_path


def test_options_of_a_comparison_are_those_of_its_management_command() -> None:
    given = ["--gateway", "opn", "october.csv", "--help"]
    assert command_line.parser().parse_args(["shadow", *given]).arguments == given
