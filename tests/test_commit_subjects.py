"""The check of commit subjects, run as by the commit-msg hook."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.stack import ROOT

pytestmark = pytest.mark.slow

CHECK = ROOT / "tests" / "commit_subjects.py"


@pytest.mark.parametrize(
    ("subject", "error_output"),
    [
        ("banks: Treat 404 with a code as unpaid", ""),
        ("core: Address two defects", ""),
        ("core: Need a key", ""),
        ("core: Add " + "x" * 49, ""),
        ("core: Add " + "x" * 50, "has 60 characters"),
        ("core: Add a check.", "without a full stop"),
        ("Add a check", "is not `area: Imperative phrase`"),
        ("core: add a check", "is not `area: Imperative phrase`"),
        ("core: Added a check", "begins with Added"),
        ("core: Adding a check", "begins with Adding"),
        ("core: Adds a check", "begins with Adds"),
    ],
)
def test_commit_subject_is_an_imperative_under_sixty_characters(
    tmp_path: Path, subject: str, error_output: str
) -> None:
    message = tmp_path / "message"
    message.write_text(f"{subject}\n\nA body of any length.\n")
    done = subprocess.run([sys.executable, CHECK, message], capture_output=True, text=True, check=False)
    assert done.returncode == (1 if error_output else 0), done.stdout
    assert error_output in done.stdout
