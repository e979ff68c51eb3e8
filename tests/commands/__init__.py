"""Runs scripts such as `manage.py` in copies of a process that has imported the packages already."""

import atexit
import os
import secrets
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
    environ = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    path = Path(tempfile.gettempdir(), f"commands-{os.getpid()}-{secrets.token_hex(4)}")
    return _start(path, [str(python)], environ)


@cache
def set_up(environ: frozenset[tuple[str, str]]) -> list[str]:
    """The same for `manage.py` with this environment: Django is set up already."""
    *command, path = warm()
    return _start(Path(f"{path}-{secrets.token_hex(4)}"), [*command, path], dict(environ), "set-up")


def _start(path: Path, command: list[str], environ: dict[str, str], *arguments: str) -> list[str]:
    server = subprocess.Popen(
        [*command, FOLDER / "server.py", path, *arguments],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C ends the tests first
    )
    assert server.stdout is not None
    server.stdout.readline()  # it listens
    atexit.register(server.communicate)
    return [command[0], "-IS", str(FOLDER / "client.py"), str(path)]
