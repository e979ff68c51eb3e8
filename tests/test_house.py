"""The house keeps its own rules; imports are judged by `lint-imports` in `make check`."""

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
APPS = [
    "approvals", "banks", "bench", "config", "console", "core", "idempotency", "merchants", "payments",
    "qrcodes", "receipts", "refunds", "sandbox", "transactions", "transfers", "webhooks", "withdrawals",
]  # fmt: skip
SOURCES = [path for app in APPS for path in (ROOT / app).rglob("*.py") if "migrations" not in path.parts]
LONGEST_FILE = 400
LONGEST_FUNCTION = 40


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= LONGEST_FUNCTION, f"{node.name} has {length} lines"


def test_nobody_but_the_services_moves_a_payment() -> None:
    allowed = {"payments/models.py", "payments/services.py"}
    movers = {str(path.relative_to(ROOT)) for path in SOURCES if ".move_to(" in path.read_text()}
    assert movers <= allowed


def test_there_is_no_drawer_for_everything() -> None:
    assert not [path for path in SOURCES if path.stem in {"utils", "helpers", "misc", "common"}]


def test_business_does_not_hide_in_signals() -> None:
    assert not [path for path in SOURCES if "django.db.models.signals" in path.read_text()]


def test_what_the_readme_points_to_exists() -> None:
    words = (ROOT / "README.md").read_text().split("`")[1::2]
    paths = [
        word for word in words if "/" in word and " " not in word and word[0].isalpha() and "<" not in word
    ]
    missing = [word for word in paths if not (ROOT / word).exists() and not word.startswith("docs/errors")]
    assert not missing


def test_generated_things_are_not_committed() -> None:
    tracked = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    assert not [name for name in tracked if name.startswith((".data", ".venv")) or name.endswith(".pyc")]
