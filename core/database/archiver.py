"""How PostgreSQL archives its WAL, without which no backup can be restored to a point in time.

Every role may read it. Some providers archive in a way of their own: then it says off.
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


class Archiver(NamedTuple):
    """What the statement above returns. age_seconds: since the server last archived WAL."""

    is_on: bool
    age_seconds: float
    is_failing: bool

    @classmethod
    def read(cls) -> Self:
        return cls(*rows.run(SQL, []).fetchone())
