"""The settings of the running instance as a file of NAME=value lines, for `manage.py`."""

import os
from collections.abc import Mapping
from pathlib import Path

from config.devstack.instance import data_dir, write_private

NAME = "instance.env"


def write(folder: Path, environ: Mapping[str, str]) -> None:
    """Write the settings where only the owner can read them."""
    write_private(folder / NAME, "".join(f"{name}={value}\n" for name, value in sorted(environ.items())))


def load() -> None:
    """Take the settings of the instance in DATA_DIR for all variables that are not set.

    An environment that names another database is another deployment's and stays as it is.
    """
    path = data_dir() / NAME
    if not path.exists():
        return
    known = dict(line.split("=", 1) for line in path.read_text().splitlines())
    if os.environ.get("DATABASE_URL") in (None, known.get("DATABASE_URL")):
        for name, value in known.items():
            os.environ.setdefault(name, value)
