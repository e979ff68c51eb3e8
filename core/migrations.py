"""Operations for migrations that run while the service answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import connection, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.operations.special import RunPython
from django.db.migrations.state import ProjectState
from django.db.models import QuerySet

from core import clock, digests, partitions, vault

BATCH_SIZE = 500
PARTITION = Path(__file__).parent / "sql/partition_by_month.sql"


@contextmanager
def _unlimited_locks(schema_editor: BaseDatabaseSchemaEditor) -> Iterator[None]:
    """CREATE INDEX CONCURRENTLY waits for older transactions, and nobody waits behind it."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout')")
        (limit,) = cursor.fetchone()
    schema_editor.execute("SET lock_timeout = 0")
    yield
    schema_editor.execute(f"SET lock_timeout = '{limit}'")


class BuildIndex(AddIndexConcurrently):
    """Build an index while others write. The migration has `atomic = False`, and no other operation.

    PostgreSQL leaves an invalid index behind if the build breaks off, so the next try first drops it.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        with _unlimited_locks(schema_editor):
            schema_editor.execute(
                f"DROP INDEX CONCURRENTLY IF EXISTS {schema_editor.quote_name(self.index.name)}"
            )
            super().database_forwards(app_label, schema_editor, from_state, to_state)


class PartitionByMonth(Operation):
    """Partition a table by month while others use it, see `core.partitions`.

    Its rows become the oldest partition, with this month and the next. A check proves first, beside those
    who write, that no row is later. Then the table and those to which it refers are locked, and the table is
    replaced within an instant. If that breaks off, run it again before the next month ends: until then the
    check refuses no row.

    No foreign key may refer to the table, and it has no storage parameters. The migration has
    `atomic = False`, no other operation, and depends on `operations.0006_partitions`.
    """

    def __init__(self, model_name: str, column: str) -> None:
        self.model_name, self.column = model_name, column

    def describe(self) -> str:
        return f"Partition {self.model_name} by month"

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """The columns stay as they are."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        table = to_state.apps.get_model(app_label, self.model_name)._meta.db_table
        if not schema_editor.collect_sql and _has_partitions(table, schema_editor):
            return
        last = partitions.later(partitions.month_of(clock.now()), 1)
        next_month = partitions.later(last, 1)
        names = {
            "table": table,
            "column": self.column,
            "key": ", ".join(dict.fromkeys(["id", self.column])),
            "key_index": "" if self.column == "id" else f"{table}_key",
            "bound": f"{table}_bound",
            "until": _start(table, next_month, schema_editor),
            "oldest": f"{table}_{last:%Y_%m}",
        }
        self._prepare(schema_editor, names)
        schema_editor.execute(PARTITION.read_text().format(**names), params=None)
        schema_editor.execute(*partitions.make_statement(table, next_month))

    def _prepare(self, schema_editor: BaseDatabaseSchemaEditor, names: dict[str, str]) -> None:
        """Prove that no row is later, and build the index of the new primary key."""

        def run(statement: str) -> None:
            schema_editor.execute(statement.format(**names), params=None)

        # A try before this one may have left something behind.
        run("-- squawk-ignore ban-drop-constraint\nALTER TABLE {table} DROP CONSTRAINT IF EXISTS {bound}")
        run("ALTER TABLE {table} ADD CONSTRAINT {bound} CHECK ({column} < '{until}') NOT VALID")
        run("ALTER TABLE {table} VALIDATE CONSTRAINT {bound}")
        if names["key_index"]:
            with _unlimited_locks(schema_editor):
                run("DROP INDEX CONCURRENTLY IF EXISTS {key_index}")
                run("CREATE UNIQUE INDEX CONCURRENTLY {key_index} ON {table} ({key})")

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """The release before works with partitions as well, so they stay."""


def _start(table: str, month: date, schema_editor: BaseDatabaseSchemaEditor) -> str:
    """The smallest value of the column in the month, of which the database knows how ids sort by time."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT operations_month_start(%s, %s)", [table, month])
        (found,) = cursor.fetchone()
    return str(found)


def _has_partitions(table: str, schema_editor: BaseDatabaseSchemaEditor) -> bool:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT relkind = 'p' FROM pg_class WHERE oid = %s::regclass", [table])
        (found,) = cursor.fetchone()
    return bool(found)


def fill_digests(app_label: str, model_name: str, column: digests.DigestedColumn) -> RunPython:
    """Give a digest to the rows from before `core.digests`, beside those who write.

    The migration has `atomic = False`, and replaces the triggers after it. It may break off and run again.
    """

    def fill(state: Any, _: BaseDatabaseSchemaEditor) -> None:
        model = state.get_model(app_label, model_name)
        filled = model._base_manager.filter(**{f"{column.sealed}__gt": ""})
        rows = filled.filter(**{column.digest: ""}).order_by("pk")
        while batch := _filled(rows, column):
            rows = rows.filter(pk__gt=batch[-1])

    return RunPython(fill, RunPython.noop)


@transaction.atomic
def _filled(rows: "QuerySet[Any]", column: digests.DigestedColumn) -> list[Any]:
    """Fill a batch, and return its keys."""
    _set_locally("qr.resealing")
    batch = list(rows.select_for_update(no_key=True)[:BATCH_SIZE])
    for row in batch:
        text = vault.open_sealed(getattr(row, column.sealed), context=row.pk)
        also = [getattr(row, name) or "" for name in column.also]
        sealed = digests.seal(text, *also, context=row.pk)
        row.__class__._base_manager.filter(pk=row.pk).update(
            **{column.sealed: sealed.token, column.digest: sealed.digest}
        )
    return [row.pk for row in batch]


def copy_digests(table: str, changes: str, *, key: str = "id") -> RunPython:
    """Copy the digest of each transfer to the rows that asked for it, as `fill_digests` does.

    changes: the SQL of the SET clause. key: the column with the id of the transfer.
    """
    update = f"""
        UPDATE {table} AS row SET {changes} FROM transfers_transfer AS transfer
        WHERE transfer.id = row.{key} AND row.id IN (
            SELECT asked.id FROM {table} AS asked JOIN transfers_transfer AS made ON made.id = asked.{key}
            WHERE asked.account_digest = '' AND made.account_digest <> '' LIMIT {BATCH_SIZE}
        )
    """  # noqa: S608

    def copy(_: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
        changed = True
        while changed:
            with transaction.atomic(), schema_editor.connection.cursor() as cursor:
                _set_locally("qr.resealing")
                _set_locally("qr.erasing")
                cursor.execute(update)
                changed = cursor.rowcount > 0

    return RunPython(copy, RunPython.noop)


def _set_locally(setting: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config(%s, 'on', true)", [setting])
