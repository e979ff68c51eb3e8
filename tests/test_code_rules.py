"""Rules about the source code that linters do not know. `lint-imports` in `make check` checks the imports."""

import re
import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
from django.apps import apps

from tests.lock_order import LOCK_ORDER, MODELS_BY_TABLE, SEPARATE_MODELS, UNORDERED_MODELS, UNORDERED_TABLES
from tests.tables import UNCOUNTED_MODELS

ROOT = Path(__file__).resolve().parents[1]
APPS = [
    "apidocs", "approvals", "audit_trail", "banks", "bench", "config", "console", "core", "counts",
    "idempotency", "ledger", "merchants", "operations", "payments", "qrcodes", "reconciliation", "refunds",
    "request_log", "sandbox", "testclock", "timeline", "transactions", "transfers", "webhooks", "withdrawals",
]  # fmt: skip
SOURCES = [path for app in APPS for path in (ROOT / app).rglob("*.py") if "migrations" not in path.parts]
TOP_LEVEL = {path.name for path in ROOT.iterdir() if not path.name.startswith((".venv", ".data"))}
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
CODE = {".py", ".ts", ".mjs", ".cjs", ".js", ".go", ".php", ".sh", ".sql"}
FOLDERS_OF_MANY_APPS = {"management", "commands", "migrations", "templatetags", "static", "sql"}


def test_only_payment_services_change_status() -> None:
    callers = {str(path.relative_to(ROOT)) for path in SOURCES if "payment.transition(" in path.read_text()}
    assert callers == {"payments/services.py"}


def test_csv_is_written_by_one_writer() -> None:
    writers = {str(path.relative_to(ROOT)) for path in SOURCES if "csv.writer(" in path.read_text()}
    assert writers == {"core/console/csv_cells.py"}


def test_no_module_is_called_utils() -> None:
    assert not [path for path in SOURCES if path.stem in {"utils", "helpers", "misc", "common"}]


def test_no_business_logic_in_model_signals() -> None:
    assert not [path for path in SOURCES if "django.db.models.signals" in path.read_text()]


def test_no_modules_or_folders_import_each_other_in_a_circle() -> None:
    """Imports inside functions, and those only for types, count too. CycleError names the modules."""
    graph = grimp.build_graph(*APPS, cache_dir=None)
    TopologicalSorter(
        {each: graph.find_modules_directly_imported_by(each) for each in graph.modules}
    ).prepare()
    assert not {each: found for each in graph.modules if (found := graph.nominate_cycle_breakers(each))}


def named_paths(text: str) -> set[str]:
    """The paths of files and folders of this project in a document: its code in backticks, and its links."""
    code = {part.partition("::")[0] for part in re.findall(r"`([\w.-]+(?:/[\w.:-]*)+)`", text)}
    links = set(re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text))
    return {path for path in code if path.split("/")[0] in TOP_LEVEL} | links


def test_paths_in_documents_exist() -> None:
    for document in DOCUMENTS:
        paths = named_paths(document.read_text())
        missing = {
            path for path in paths if not ((ROOT / path).exists() or (document.parent / path).exists())
        }
        assert not missing


def test_structure_page_has_one_line_for_every_folder_with_code() -> None:
    """`tests/<folder>` needs no line if there is a folder of that name, which it tests."""
    paths = [Path(name) for name in tracked_files()]
    folders = {str(parent) for path in paths for parent in path.parents}
    with_code = {str(path.parent) for path in paths if path.suffix in CODE} - {"."}
    needed = {
        name
        for name in with_code
        if name.removeprefix("tests/") not in folders - {name}
        and not FOLDERS_OF_MANY_APPS.intersection(name.split("/"))
    }
    lines = re.findall(r"^\| `([\w./-]+)/` \| .+ \|$", (ROOT / "docs" / "structure.md").read_text(), re.M)
    assert len(lines) == len(set(lines))
    assert needed <= set(lines) <= folders


def test_every_table_has_a_place_in_the_lock_order() -> None:
    """Add a new table to LOCK_ORDER, UNORDERED_MODELS or SEPARATE_MODELS of `tests/lock_order.py`."""
    separate = {table for table, model in MODELS_BY_TABLE.items() if model.label in SEPARATE_MODELS}
    places = [*(set(LOCK_ORDER) & set(MODELS_BY_TABLE)), *UNORDERED_TABLES, *separate]
    assert sorted(places) == sorted(MODELS_BY_TABLE)


def test_models_named_by_test_helpers_exist() -> None:
    known = {model._meta.label for model in apps.get_models()}
    assert known >= UNORDERED_MODELS | SEPARATE_MODELS | UNCOUNTED_MODELS


def test_generated_files_are_not_committed() -> None:
    assert not [
        name for name in tracked_files() if name.startswith((".data", ".venv")) or name.endswith(".pyc")
    ]


def tracked_files() -> list[str]:
    return subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
