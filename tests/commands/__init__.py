"""Runs scripts such as `manage.py` in copies of a process that has imported the packages already."""

import atexit
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent


@cache
def warm(python: str | Path = sys.executable) -> list[str]:
    """What stands in the place of `python` before a script, for `subprocess`. It saves most of a start.

    The process that starts passes signals on, and ends as the command ends. The command has the environment
    that is given, but variables of Python itself (`PYTHON...`) do nothing. What tests how a process starts
    uses the real `python`.
    """
    listener = socket.socket(socket.AF_UNIX)
    path = Path(tempfile.gettempdir(), f"commands-{secrets.token_hex(8)}")
    listener.bind(str(path))
    listener.listen()
    with listener:
        server = subprocess.Popen(
            [python, FOLDER / "server.py", path, str(listener.fileno())],
            env={name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"},
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            start_new_session=True,  # Ctrl-C ends the tests first
        )
    atexit.register(server.communicate)
    return [str(python), "-IS", str(FOLDER / "client.py"), str(path)]
