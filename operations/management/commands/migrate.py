"""`manage.py migrate`: Django's command, for a database that the service uses meanwhile.

- It waits for a lock for two seconds only: what comes after it in the queue of the lock waits as long. Then
  it gives up its place, and tries again after a pause.
- Two that run at once take turns.
- New tables get their grants. If the owner (MIGRATION_DATABASE_URL) is another login than that of the
  service, nothing is migrated without roles to grant to. `config.management` compares them.
- Its statements have no time limit, because an index of a large table takes minutes.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.migrations.executor import MigrationExecutor

from core.database import rows
from core.database.migrations import together
from core.database.partitions import GIVES_WAY
from core.database.roles import APPLICATION, REPORTS
from operations.data_protection import database_roles, shop_fence

LOCK_SECONDS = 2
PAUSE_SECONDS = 3.0
TRIES = 100
LIMITS = dict.fromkeys(("statement_timeout", "idle_in_transaction_session_timeout"), "0")
LIMITS["lock_timeout"] = f"{LOCK_SECONDS}s"
# The key of an advisory lock of a session. Nobody waits for it in the database, because the build of an index
# waits for all who wait there.
ONE_AT_A_TIME = 7_264_001


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        connection = connections[options["database"]]
        for number in range(1, TRIES + 1):
            try:
                with self._alone(connection):
                    if options["plan"] or options["check_unapplied"]:
                        return super().handle(*args, **options)
                    self._prepare_roles()
                    self._drop_views(connection)
                    shown = super().handle(*args, **options)
                    if database_roles.exist():
                        database_roles.grant()
                    return shown
            except OperationalError as error:
                if not isinstance(error.__cause__, GIVES_WAY):
                    raise
                self.stderr.write(f"Somebody uses a table that changes. Try {number} of {TRIES} ended.")
                time.sleep(PAUSE_SECONDS)
        raise CommandError("A table was used all the time. Run migrate again when less is going on.")

    def migration_progress_callback(self, action: str, migration: Any = None, fake: bool = False) -> None:
        if action == "apply_start":
            migration.operations = [*together(migration.operations)]
        super().migration_progress_callback(action, migration, fake)

    def _drop_views(self, connection: Any) -> None:
        """Before tables change, whose columns the views of shops have. The grants make the views anew."""
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            rows.run(shop_fence.DROP, [])

    def _prepare_roles(self) -> None:
        if database_roles.exist():
            try:
                database_roles.create()
            except database_roles.RolesMissing:
                self.stderr.write(f"Pages of shops stay closed. As a superuser: {shop_fence.HOW_TO_CREATE}")
            return
        if not settings.MIGRATION_DATABASE_URL:
            self.stderr.write(
                f"No rights are granted, because the roles {APPLICATION} and {REPORTS} do not exist. "
                "Only the owner of the tables can work. `thaiqr-server manage database_roles` makes them."
            )
            return
        try:
            database_roles.create()
        except database_roles.RolesMissing:
            raise CommandError(
                "Nothing is changed. The service would have no rights: the roles "
                f"{APPLICATION} and {REPORTS} do not exist. As a superuser: {database_roles.HOW_TO_CREATE} "
                f"GRANT {APPLICATION} TO (the login of DATABASE_URL); then run migrate again."
            ) from None

    @contextmanager
    def _alone(self, connection: Any) -> Iterator[None]:
        """Wait until no other `migrate` runs. Its session has limits of its own meanwhile."""
        with connection.cursor() as cursor:
            self._lock(cursor)
            for name, value in LIMITS.items():
                cursor.execute("SELECT set_config(%s, %s, false)", [name, value])
        try:
            yield
        except OperationalError:
            # Django leaves its transaction open if a foreign key, which it adds last, gets no lock. The
            # limits and the lock end with the session.
            connection.close()
            connection.connect()
            raise
        with connection.cursor() as cursor:
            for name in LIMITS:
                cursor.execute(f"RESET {name}")
            cursor.execute("SELECT pg_advisory_unlock(%s)", [ONE_AT_A_TIME])

    def _lock(self, cursor: Any) -> None:
        is_told = False
        while True:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [ONE_AT_A_TIME])
            if cursor.fetchone()[0]:
                return
            if not is_told:
                self.stderr.write("Another migrate is running. Waiting for its end.")
            is_told = True
            time.sleep(1)
