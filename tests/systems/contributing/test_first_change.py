"""The first change that CONTRIBUTING describes, carried out in a copy of the tree."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.stack import ROOT

pytestmark = pytest.mark.slow
LEFT_OUT = (".git", ".venv", ".data*", "__pycache__", ".*_cache", "node_modules", ".hypothesis")
DIFF = re.compile(r"^ *```diff\n(.*?)^ *```$", re.M | re.S)
# What fails if a place is forgotten. The names in Thai need gettext, which not every machine has.
TESTS = (
    "tests/qrcodes/test_creation.py",
    "tests/payments/test_list.py",
    "tests/apidocs/test_openapi.py",
    "tests/clients/test_python_coverage.py",
    "tests/bench/test_peer.py",
    "tests/request_log/test_redaction.py",
    "tests/test_api_rules.py",
)
MOST_FILES = 9


def run(copy: Path, *command: str, given: str = "", without: str = "-") -> None:
    """without: the prefix of variables that the command does not get."""
    path = f"{copy}:{copy / 'clients/python/src'}"
    environ = {name: value for name, value in os.environ.items() if not re.match(without, name)}
    environ |= {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=copy, env=environ, input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_first_change_is_whole(tmp_path: Path) -> None:
    copy = tmp_path / "tree"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
    section = (copy / "CONTRIBUTING.md").read_text().partition("### Add a field")[2].partition("\n### ")[0]
    diff = "".join(textwrap.dedent(each) for each in DIFF.findall(section))
    assert len(re.findall(r"^\+\+\+ ", diff, re.M)) <= MOST_FILES
    run(copy, "git", "apply", "-", given=diff)
    run(copy, sys.executable, "manage.py", "makemigrations", "--skip-checks")
    run(copy, sys.executable, "manage.py", "write_reference")
    # Servers of its own, with a database that has the new column.
    tests = ("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *TESTS)
    run(copy, sys.executable, *tests, without="DATABASE_|REDIS_|TEST_|PYTEST_")
