"""Operations for migrations that run while the service answers."""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently


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
