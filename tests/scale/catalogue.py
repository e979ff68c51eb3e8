"""What PostgreSQL's catalogue says of the tables: which `create_distributed_table` of Citus would take.

Citus wants the column by which rows are spread in each unique index, and in each foreign key to another
table that is spread.
"""

import re
from dataclasses import dataclass
from typing import Any

from django.db import connection

COLUMN = "merchant_id"
_TABLES = """
SELECT c.relname, count(a.attname) FILTER (WHERE a.attname = 'merchant_id') > 0
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
GROUP BY c.relname
"""
_MAY_BE_EMPTY = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE a.attname = 'merchant_id' AND NOT a.attnotnull AND c.relnamespace = 'public'::regnamespace
    AND c.relkind IN ('r', 'p') AND NOT c.relispartition
"""
_FUNCTIONS = """
SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prorettype <> 'trigger'::regtype
"""
_UNIQUE = """
SELECT t.relname, c.relname, i.indisprimary,
       array(SELECT attname::text FROM pg_attribute WHERE attrelid = t.oid AND attnum = ANY (i.indkey))
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
WHERE i.indisunique AND t.relnamespace = 'public'::regnamespace AND NOT t.relispartition
"""
_FOREIGN = """
SELECT f.conrelid::regclass::text, f.confrelid::regclass::text,
       array(SELECT attname::text FROM pg_attribute WHERE attrelid = f.conrelid AND attnum = ANY (f.conkey))
FROM pg_constraint f JOIN pg_class t ON t.oid = f.conrelid
WHERE f.contype = 'f' AND f.connamespace = 'public'::regnamespace AND NOT t.relispartition
"""
INSERT = re.compile(r'\bINSERT INTO\s+"?(\w+)"?\s*\(([^)]*)\)')
# A merchant that the program gives. A merchant that a join finds does not say where the rows are.
BY_MERCHANT = re.compile(r'\bmerchant_id"?\s*=\s*(?:ANY\s*\(\s*)?%')
OTHER_TABLE = re.compile(r'\b(?:FROM|JOIN|UPDATE)\s+"?(\w+_\w+)')


@dataclass(frozen=True)
class Unique:
    table: str
    name: str
    is_primary: bool
    columns: tuple[str, ...]


@dataclass(frozen=True)
class ForeignKey:
    """From a table to another, by these columns."""

    table: str
    target: str
    columns: tuple[str, ...]


def tables() -> dict[str, bool]:
    """All tables, each with whether it has the column."""
    return dict(_rows(_TABLES))


def may_be_empty() -> set[str]:
    """The tables whose rows may have no merchant."""
    return {name for (name,) in _rows(_MAY_BE_EMPTY)}


def functions() -> set[str]:
    """Functions that read tables."""
    return {name for (name,) in _rows(_FUNCTIONS)}


def unique_indexes() -> list[Unique]:
    return [Unique(table, name, primary, tuple(columns)) for table, name, primary, columns in _rows(_UNIQUE)]


def foreign_keys() -> list[ForeignKey]:
    return [ForeignKey(table, target, tuple(columns)) for table, target, columns in _rows(_FOREIGN)]


def goes_to_one_merchant(sql: str, spread: set[str]) -> bool:
    """Whether a statement names the merchant of all rows of these tables that it reads and writes."""
    inserts = INSERT.findall(sql)
    if any(table in spread and COLUMN not in columns for table, columns in inserts):
        return False
    others = {table for table in OTHER_TABLE.findall(sql) if table in spread}
    return not others or BY_MERCHANT.search(sql) is not None


def _rows(sql: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())
