"""Count the rows of all tables before and after a request, and empty the tables after a test."""

from typing import Any

from django.apps import apps
from django.db import connection, transaction

# Locks of this database alone. Other databases of the server are copies, whose tables have the same oids.
LOCKS = """(SELECT pg_locks.* FROM pg_locks JOIN pg_database ON pg_database.oid = database
    WHERE datname = current_database()) AS locks"""
# Tables that tasks and logins write at any time, whatever the request does.
UNCOUNTED_APPS = {"admin", "contenttypes", "console", "operations", "sessions", "usersessions"}
UNCOUNTED_MODELS = {
    "audit_trail.ChainLink",
    "audit_trail.UnchainedRecord",
    "counts.CountClock",
    "counts.OpenPeriod",
    "reconciliation.Backoff",
    "transfers.DatabaseIdentity",
    "transfers.DatabaseMark",
    "reconciliation.BankRateLimit",
    "reconciliation.Inquiry",
    "reconciliation.InquiryAnswer",
    "reconciliation.ScanCursor",
    "request_log.RequestRecord",
    "webhooks.FeedBlock",
    "webhooks.UnnumberedEvent",
}
COUNTED_TABLES = sorted(
    model._meta.db_table
    for model in apps.get_models(include_auto_created=True)
    if model._meta.app_label not in UNCOUNTED_APPS and model._meta.label not in UNCOUNTED_MODELS
)
# A task rolls them up at any time.
COUNTERS = {"counts_countdelta", "counts_listcount"}
# Migrations fill these.
FILLED_TABLES = {"counts_countclock", "django_content_type", "auth_permission"}
# Tests may have closed periods of the future.
RESET_CLOCK = """UPDATE counts_countclock SET closed = counts_period(now()), announced = counts_period(now()),
    marked_by = NULL"""


def version_query() -> str:
    """The SQL that asks each table how many rows it has and which transactions wrote them."""
    return " UNION ALL ".join(
        f"SELECT '{table}', count(*), sum(xmin::text::bigint) FROM \"{table}\"" for table in COUNTED_TABLES
    )


def count_rows(cursor: Any = None) -> dict[str, int]:
    """The number of rows of each table, without the counters of lists.

    cursor: of another database than the one of this test.
    """
    tables = [table for table in COUNTED_TABLES if table not in COUNTERS]
    counts = " UNION ALL ".join(f"SELECT '{table}', count(*) FROM \"{table}\"" for table in tables)
    cursor = cursor or connection.cursor()
    cursor.execute(counts)
    return dict(cursor.fetchall())


@transaction.atomic
def delete_all_rows() -> None:
    """Delete all rows that migrations did not write. TRUNCATE takes longer for the few rows of a test."""
    tables = set(connection.introspection.django_table_names(include_views=False)) - FILLED_TABLES
    deletions = "; ".join(f'DELETE FROM "{table}"' for table in sorted(tables))
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL session_replication_role = replica; {deletions}; {RESET_CLOCK}")
