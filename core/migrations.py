"""Operations for migrations that run while the service answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from core import clock, partitions

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
