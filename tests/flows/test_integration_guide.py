"""The commands of docs/integration.md run one after the other, as a reader runs them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stack import ROOT, Stack

pytestmark = pytest.mark.slow
TEXT = (ROOT / "docs/integration.md").read_text()
CURL = Path(__file__).with_name("curl.py")
SECONDS = 120


def test_commands_of_the_integration_guide_run_without_error(stack: Stack, tmp_path: Path) -> None:
    made = json.loads(stack.manage("create_merchant", "--name", "Reader", "--mode", "test", "--json"))
    for name, command in {"curl": f"{sys.executable} {CURL}", "python3": sys.executable}.items():
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        program.chmod(0o700)
    environ = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "BASE": stack.base_url,
        "KEY": made["secret_key"],
    }
    # The first block sets the variables of the reader.
    _, *commands = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert sum(block.count("api ") for block in commands) == 20
    done = subprocess.run(
        ["sh", "-eu"],
        input="\n".join(commands),
        env=environ,
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"status":"expired"' in done.stdout


def test_error_of_the_integration_guide_is_in_the_catalogue() -> None:
    shown = re.search(r"^```json\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    assert shown is not None
    error = json.loads(shown[1])["error"]
    table = (ROOT / "docs/errors.md").read_text()
    assert (
        f"| `{error['code']}` | `{error['type']}` | {error['message'].replace('0.', '{received}.')} |"
        in table
    )
