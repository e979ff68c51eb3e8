"""Operations for migrations that run while the service answers, or that create many rules of tables."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db.migrations import AddConstraint, AddIndex
from django.db.migrations.operations.base import Operation
from pgtrigger.migrations import AddTrigger

RULES = (AddConstraint, AddIndex, AddTrigger)


class BuildIndex(AddIndexConcurrently):
    """Build an index while others write. The migration has `atomic = False`, and no other operation.

    PostgreSQL leaves an invalid index behind if the build breaks off, so the next try first drops it.
    """

    def database_forwards(self, app_label: str, schema_editor: Any, *args: Any, **kwargs: Any) -> None:
        with schema_editor.connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('lock_timeout')")
            (limit,) = cursor.fetchone()
        # CREATE INDEX CONCURRENTLY waits for older transactions, and nobody waits behind it.
        schema_editor.execute("SET lock_timeout = 0")
        name = schema_editor.quote_name(self.index.name)
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        super().database_forwards(app_label, schema_editor, *args, **kwargs)
        schema_editor.execute(f"SET lock_timeout = '{limit}'")


class Together(Operation):
    """Indexes, constraints and triggers that follow each other, forwards only.

    Django makes the classes of models anew after each of them, which is more than half of a first `migrate`.
    """

    def __init__(self, operations: Sequence[Any]) -> None:
        self.operations = operations

    def state_forwards(self, app_label: str, state: Any) -> None:
        classes = state.__dict__.pop("apps", None)
        for each in self.operations:
            each.state_forwards(app_label, state)
        if classes is not None:
            state.apps = classes
            state.reload_models({(app_label, each.model_name_lower) for each in self.operations})

    def database_forwards(self, *args: Any) -> None:
        for each in self.operations:
            each.database_forwards(*args)


def together(operations: Sequence[Operation]) -> Iterator[Operation]:
    for is_rule, group in groupby(operations, lambda each: type(each) in RULES):
        consecutive = [*group]
        yield from [Together(consecutive)] if is_rule else consecutive
