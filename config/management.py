"""Runs a management command, for `manage.py` and `thaiqr-server manage`."""

import os
import sys
from typing import Any

from django.core.management import execute_from_command_line
from django.db import OperationalError

from config.env import OWNER_URL, database_url, env, read_variable
from core import request_context
from core.commands import show_any_character
from core.database.availability import is_unavailable

# They need the rights of the owner of the tables.
OWNER_COMMANDS = {"migrate", "database_roles", "import_merchant"}


def run(program: str, *arguments: str) -> None:
    """Run `program arguments...`. Exits with a message if the database does not answer."""
    set_defaults()
    show_any_character()
    command = arguments[0] if arguments else "help"
    if command in OWNER_COMMANDS and env.str(OWNER_URL, ""):
        # A service that works as the owner too has no owner beside it.
        is_service = _login(OWNER_URL) == _login("DATABASE_URL")
        env.ENVIRON["DATABASE_URL"] = env.str(OWNER_URL)
        if is_service:
            env.ENVIRON[OWNER_URL] = ""
    request_context.begin(actor=f"command:{command}")
    try:
        execute_from_command_line([program, *arguments])
    except OperationalError as error:
        if not is_unavailable(error):
            raise  # such as a lock that took too long: its traceback helps
        reason = str(error).partition("\n")[0]
        sys.exit(f"The database does not answer: {reason}\nIf it is that of `make run`, start it first.")


def set_defaults() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    # Standard output holds the answer of a command, such as a key as JSON.
    os.environ.setdefault("LOG_STREAM", "stderr")


def _login(name: str) -> str | None:
    """The user in an address, None without one. An invalid address is for `config.checks`."""
    address: dict[str, Any] = read_variable(name, database_url, {})
    user: str | None = address.get("USER")
    return user
