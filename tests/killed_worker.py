"""A process that works on the database of a test, to be killed while it waits there."""

import os
import subprocess
import sys

from django.conf import settings
from django.db import connection

from core.database import rows
from tests.stack import ROOT

NAME = "killed worker"


def start(code: str) -> "subprocess.Popen[bytes]":
    """Run this code after Django is set up."""
    given, ours = os.environ["DATABASE_URL"], connection.settings_dict["NAME"]
    environ = os.environ | {
        "DATABASE_URL": f"{given.rsplit('/', 1)[0]}/{ours}",
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "FIELD_ENCRYPTION_KEYS": ",".join(settings.FIELD_ENCRYPTION_KEYS),
        "PGAPPNAME": NAME,
    }
    command = [sys.executable, "-c", f"import django; django.setup(); {code}"]
    return subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL)


def has_left_the_database() -> bool:
    """Whether PostgreSQL has noticed the end of the process. Call it outside of a transaction."""
    sessions = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s"
    )
    return bool(rows.run(sessions, [NAME]).fetchone() == (0,))
