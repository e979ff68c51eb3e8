"""How many rows there are, to tell whether a refusal left something behind, whether any was written since,
and how to be rid of them."""

from typing import Any

from django.db import connection, transaction

# Left out is what machinery writes by the clock, whoever asks.
COUNTED_TABLES = (
    "SELECT tablename FROM pg_tables"
    " WHERE schemaname = 'public'"
    " AND tablename !~"
    " '^(django_|console_|operations_|reconciliation_(inquiry|bankratelimit|backoff|scancursor))' "
    "ORDER BY 1"
)
# What Django knows about tables is theirs.
EMPTIED_TABLES = (
    "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    " AND tablename NOT IN ('django_migrations', 'django_content_type', 'auth_permission')"
)


def count_query(cursor: Any) -> str:
    """The SQL that counts the rows of every table."""
    cursor.execute(COUNTED_TABLES)
    tables = [name for (name,) in cursor.fetchall()]
    assert len(tables) > 10
    return " UNION ALL ".join(f"SELECT '{table}', count(*) FROM \"{table}\"" for table in tables)


def version_query(cursor: Any) -> str:
    """The SQL that asks each table how many rows it has and which transactions wrote them."""
    cursor.execute(COUNTED_TABLES)
    return " UNION ALL ".join(
        f"SELECT '{table}', count(*), sum(xmin::text::bigint) FROM \"{table}\""
        for (table,) in cursor.fetchall()
    )


def count_rows(cursor: Any, sql: str) -> dict[str, int]:
    """Rows by table; `sql` is what `count_query` made."""
    cursor.execute(sql)
    return dict(cursor.fetchall())


@transaction.atomic
def delete_all_rows() -> None:
    """Delete every row but those that came with the tables.

    Not by TRUNCATE, which costs more than the few rows of a test.
    """
    with connection.cursor() as cursor:
        cursor.execute(EMPTIED_TABLES)
        deletions = "; ".join(f'DELETE FROM "{table}"' for (table,) in cursor.fetchall())
        cursor.execute(f"SET LOCAL session_replication_role = replica; {deletions}")
