"""Runs a management command, for `manage.py` and `thaiqr-server manage`."""

import os
import sys

from django.core.management import execute_from_command_line
from django.db import OperationalError

from config.env import OWNER_URL, env
from core import request_context
from core.postgres.availability import is_unavailable

# They need the rights of the owner of the tables.
OWNER_COMMANDS = {"migrate", "database_roles"}


def run(program: str, *arguments: str) -> None:
    """Run `program arguments...`. Exits with a message if the database does not answer."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    # Standard output holds the answer of a command, such as a key as JSON.
    os.environ.setdefault("LOG_STREAM", "stderr")
    command = arguments[0] if arguments else "help"
    if command in OWNER_COMMANDS and (owner_url := env.str(OWNER_URL, "")):
        env.ENVIRON["DATABASE_URL"] = owner_url
    request_context.begin(actor=f"command:{command}")
    try:
        execute_from_command_line([program, *arguments])
    except OperationalError as error:
        if not is_unavailable(error):
            raise  # such as a lock that took too long: its traceback helps
        reason = str(error).partition("\n")[0]
        sys.exit(f"The database does not answer: {reason}\nIf it is that of `make run`, start it first.")
