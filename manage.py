#!/usr/bin/env python
"""Management commands. Without DATABASE_URL they work on the instance that `make run` started."""

import os
import sys

from django.core.management import execute_from_command_line
from django.db import OperationalError

from config.devstack.environment import load_env_file
from core import request_context
from core.postgres.availability import is_unavailable

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    # Standard output holds the answer of a command, such as a key as JSON.
    os.environ.setdefault("LOG_STREAM", "stderr")
    load_env_file()
    request_context.begin(actor=f"command:{sys.argv[1] if len(sys.argv) > 1 else 'help'}")
    try:
        execute_from_command_line(sys.argv)
    except OperationalError as error:
        if not is_unavailable(error):
            raise  # such as a lock that took too long: its traceback helps
        reason = str(error).partition("\n")[0]
        sys.exit(f"The database does not answer: {reason}\nIf it is that of `make run`, start it first.")
