"""The house keeps its own rules; imports are judged by `lint-imports` in `make check`."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
APPS = [
    "apidocs", "approvals", "banks", "bench", "config", "console", "core", "idempotency", "ledger",
    "merchants", "operations", "payments", "qrcodes", "reconciliation", "refunds", "sandbox", "timeline",
    "transactions", "transfers", "webhooks", "withdrawals",
]  # fmt: skip
SOURCES = [path for app in APPS for path in (ROOT / app).rglob("*.py") if "migrations" not in path.parts]


def test_only_payment_services_change_status() -> None:
    allowed = {"payments/models.py", "payments/services.py"}
    movers = {str(path.relative_to(ROOT)) for path in SOURCES if ".move_to(" in path.read_text()}
    assert movers <= allowed


def test_no_module_is_called_utils() -> None:
    assert not [path for path in SOURCES if path.stem in {"utils", "helpers", "misc", "common"}]


def test_no_business_logic_in_model_signals() -> None:
    assert not [path for path in SOURCES if "django.db.models.signals" in path.read_text()]


def test_what_the_readme_points_to_exists() -> None:
    messages = (ROOT / "README.md").read_text().split("`")[1::2]
    paths = [
        result
        for result in messages
        if "/" in result and " " not in result and result[0].isalpha() and "<" not in result
    ]
    missing = [
        result for result in paths if not (ROOT / result).exists() and not result.startswith("docs/errors")
    ]
    assert not missing


def test_generated_files_are_not_committed() -> None:
    tracked = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    assert not [name for name in tracked if name.startswith((".data", ".venv")) or name.endswith(".pyc")]
