from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connection
from psycopg import sql


class Command(BaseCommand):
    help = (
        "Set time-outs, time zone and `jit` for new sessions of the role of DATABASE_URL. "
        "Needed behind a pooler such as PgBouncer, which takes no settings from its clients."
    )

    def handle(self, *args: Any, **options: Any) -> str:
        role = sql.SQL("ALTER ROLE CURRENT_USER IN DATABASE {} SET {} = {}")
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_database()")
            database = sql.Identifier(cursor.fetchone()[0])
            for name, value in settings.SESSION_PARAMETERS.items():
                cursor.execute(role.format(database, sql.Identifier(name), sql.Literal(value)))
        names = ", ".join(settings.SESSION_PARAMETERS)
        return f"New sessions have {names}. Run RECONNECT in the console of the pooler to end the old ones."
