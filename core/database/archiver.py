"""How PostgreSQL archives its WAL, without which no backup reaches a point in time; its newest base backup.

Every role may read how it archives. Some providers archive in a way of their own: then it says off.
"""

from typing import NamedTuple, Self

from core.database import rows

# A server that has never archived counts from its start.
SQL = """
SELECT current_setting('archive_mode') <> 'off',
       extract(epoch FROM clock_timestamp() - coalesce(last_archived_time, stats_reset))::float8,
       coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), false)
  FROM pg_stat_archiver
"""
# `docs/restore.md` gives the right.
MAY_LIST_WAL = "SELECT has_function_privilege('pg_ls_waldir()', 'EXECUTE')"
# A base backup leaves its history file beside the WAL until the next one. A restore and a new primary begin
# a timeline, which leaves one too: until their first backup they count from there, a new server from its
# start.
BASE_BACKUP_AGE = """
SELECT extract(epoch FROM clock_timestamp() - coalesce(max(modification), (
       SELECT stats_reset FROM pg_stat_archiver)))::float8
  FROM pg_ls_waldir() WHERE name ~ '[.](backup|history)$'
"""


class Archiver(NamedTuple):
    """What the statement above returns. age_seconds: since the server last archived WAL."""

    is_on: bool
    age_seconds: float
    is_failing: bool

    @classmethod
    def read(cls) -> Self:
        return cls(*rows.run(SQL, []).fetchone())


def base_backup_age_seconds() -> float | None:
    """Since the newest base backup, full or incremental. None if this role may not know it."""
    if rows.run(MAY_LIST_WAL, []).fetchone() != (True,):
        return None
    (age,) = rows.run(BASE_BACKUP_AGE, []).fetchone()
    return float(age)
