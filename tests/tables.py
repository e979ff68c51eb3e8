"""How many rows there are, to tell whether a refusal left something behind."""

from typing import Any

# Left out is what machinery writes by the clock, whoever asks.
TABLES = (
    "SELECT tablename FROM pg_tables"
    " WHERE schemaname = 'public' AND tablename !~ '^(django_|console_)' ORDER BY 1"
)


def counting(cursor: Any) -> str:
    """The SQL that counts the rows of every table."""
    cursor.execute(TABLES)
    tables = [name for (name,) in cursor.fetchall()]
    assert len(tables) > 10
    return " UNION ALL ".join(f"SELECT '{table}', count(*) FROM \"{table}\"" for table in tables)


def count_rows(cursor: Any, sql: str) -> dict[str, int]:
    """Rows by table; `sql` is what `counting` made."""
    cursor.execute(sql)
    return dict(cursor.fetchall())
