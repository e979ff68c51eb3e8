"""No migration since the last release stops requests, or breaks the release that still runs beside it.

The rules are those of squawk, a linter for PostgreSQL. The migrations of a release are those at its tag.
"""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from core.database.migrations import BuildIndex
from tests import judges
from tests.stack import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
SQUAWK = Path(sys.executable).with_name("squawk")
# `manage.py migrate` sets the limits and the transactions. Types of columns are the choice of Django.
LEFT_OUT = (
    "require-lock-timeout", "require-statement-timeout", "transaction-nesting", "prefer-robust-stmts",
    "prefer-text-field", "prefer-identity", "prefer-bigint-over-int", "prefer-bigint-over-smallint",
)  # fmt: skip


def findings(sql: str, folder: Path, *, atomic: bool) -> list[str]:
    """The rules of squawk that the statements break."""
    file = folder / "migration.sql"
    file.write_text(sql)
    options = ["--reporter=json", "--pg-version=15", f"--exclude={','.join(LEFT_OUT)}"]
    if atomic:
        options.append("--assume-in-transaction")
    done = subprocess.run([SQUAWK, *options, file], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    return [f"{each['rule_name']}: {each['message']}" for each in json.loads(done.stdout)]


def sql_of(migration: migrations.Migration, state: ProjectState) -> str:
    """The statements of a migration, without running them."""
    outside = connection.copy()  # of the transaction of the test, which some operations refuse
    with closing(outside), outside.schema_editor(collect_sql=True, atomic=migration.atomic) as editor:
        migration.apply(state, editor, collect_sql=True)
    return "\n".join(editor.collected_sql)


def ours(loader: MigrationLoader) -> list[tuple[str, str]]:
    """App and name of each migration of this project."""
    return sorted(key for key in loader.disk_migrations if (ROOT / key[0] / "migrations").is_dir())


def test_migrations_since_the_last_release_can_run_beside_it(tmp_path: Path) -> None:
    loader = MigrationLoader(connection)
    released = migrations_of_the_last_release()
    found = {}
    for app, name in ours(loader):
        if f"{app}.{name}" in released:
            continue
        migration = loader.disk_migrations[app, name]
        sql = sql_of(migration, loader.project_state((app, name), at_end=False))
        found[f"{app}.{name}"] = findings(sql, tmp_path, atomic=migration.atomic)
    assert {name: rules for name, rules in found.items() if rules} == {}


def test_migrations_of_the_last_release_still_exist() -> None:
    present = {f"{app}.{name}" for app, name in ours(MigrationLoader(connection))}
    assert migrations_of_the_last_release() <= present


def migrations_of_the_last_release() -> set[str]:
    """Such as `payments.0001_initial`. Before the first release, the first ones of all apps are the start."""
    tag = judges.last_release()
    if not tag:
        return {f"{app}.{name}" for app, name in ours(MigrationLoader(connection)) if name == "0001_initial"}
    files = judges.git("ls-tree", "-r", "--name-only", tag).split()
    return {f"{m[1]}.{m[2]}" for file in files if (m := re.fullmatch(r"(\w+)/migrations/(\d\w+)\.py", file))}


BRANCH = models.CharField(max_length=35)
INDEX = models.Index(fields=["client_name"], name="payment_by_client_name")
SMALL = models.CheckConstraint(condition=models.Q(amount__lt=1), name="payment_small")


@pytest.mark.parametrize(
    ("operation", "rule"),
    [
        (migrations.AddField("payment", "branch", BRANCH), "adding-required-field"),
        (migrations.RemoveField("payment", "description"), "ban-drop-column"),
        (migrations.RenameField("payment", "description", "note"), "renaming-column"),
        (migrations.AlterField("payment", "failure_code", models.TextField()), "changing-column-type"),
        (migrations.AlterModelTable("payment", "payments"), "renaming-table"),
        (migrations.AddIndex("payment", INDEX), "require-concurrent-index-creation"),
        (migrations.AddConstraint("payment", SMALL), "constraint-missing-not-valid"),
        (migrations.DeleteModel("cardcharge"), "ban-drop-table"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_dangerous_migration_is_found(operation: Operation, rule: str, tmp_path: Path) -> None:
    assert rule in " ".join(findings_of([operation], tmp_path))


NULLABLE = models.CharField(max_length=35, null=True)


@pytest.mark.parametrize(
    ("operations", "atomic"),
    [
        ([migrations.AddField("payment", "branch", NULLABLE)], True),
        ([migrations.AddField("payment", "is_new", models.BooleanField(db_default=False))], True),
        ([BuildIndex("payment", INDEX)], False),
    ],
)
def test_safe_migration_is_accepted(operations: Sequence[Operation], atomic: bool, tmp_path: Path) -> None:
    assert findings_of(operations, tmp_path, atomic=atomic) == []


def findings_of(operations: Sequence[Operation], folder: Path, *, atomic: bool = True) -> list[str]:
    kind = type("Migration", (migrations.Migration,), {"operations": list(operations), "atomic": atomic})
    migration = kind("0099_next", "payments")
    state = MigrationLoader(connection).project_state()
    return findings(sql_of(migration, state), folder, atomic=atomic)
