"""The data folder of an instance: its lock, secrets, ports and demo merchant."""

import fcntl
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self
from unicodedata import category

from config.devstack import StartError, ports
from config.devstack.postgres_programs import fallback_home
from config.devstack.processes import wait_for_end

DEFAULT_FOLDER = ".data"
STATE_FILE = "instance.json"
LOCK_FILE = "lock"
SCRATCH = ".new"
# A start that was killed leaves the lock, and perhaps what `write_private` began.
BEGUN = {LOCK_FILE, Path(STATE_FILE).with_suffix(SCRATCH).name}
# Unicode categories: control characters, bytes that are no UTF-8, separators of lines. The name of the folder
# stands in a line of files and is printed.
NOT_IN_A_LINE = {"Cc", "Cs", "Zl", "Zp"}
# The tables of a new instance and the first segments of its write-ahead log have 150 MB.
NEEDED_BYTES = 200 * 10**6
# How long the processes of a killed supervisor may take to end.
LEFTOVER_SECONDS = 10.0


def data_dir() -> Path:
    """DATA_DIR, or `.data` in the working directory."""
    return Path(os.environ.get("DATA_DIR") or DEFAULT_FOLDER).resolve()


class Instance:
    """The data folder of one instance, locked by one process. Use it as a context to unlock it."""

    def __init__(self, folder: Path) -> None:
        """Create and lock the folder. Raises StartError."""
        self.folder = folder
        self.state_file = folder / STATE_FILE
        try:
            _create_folder(folder)
            self._lock()
        except OSError as error:  # a file, a folder of another user, a read-only disk
            raise StartError(f"DATA_DIR={folder} cannot be used: {error.strerror}.") from None
        known = self.state_file.read_text() if self.state_file.exists() else "{}"
        self.state: dict[str, Any] = json.loads(known)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.lock.close()

    def _lock(self) -> None:
        self.lock = private(self.folder / LOCK_FILE).open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.lock.close()
            raise StartError(
                f"{self.folder} belongs to an instance that is running. Stop it, or choose another DATA_DIR."
            ) from None

    def check_room(self) -> None:
        """Raises StartError if the disk is too full for servers of its own."""
        free = shutil.disk_usage(self.folder).free
        if free < NEEDED_BYTES:
            raise StartError(
                f"DATA_DIR={self.folder} has {free // 10**6} MB of free space. "
                f"PostgreSQL needs {NEEDED_BYTES // 10**6} MB to start."
            )

    @property
    def pids(self) -> Path:
        return self.folder / "pids.json"

    def wait_for_leftovers(self) -> None:
        """Wait for programs of a killed supervisor, which end by themselves."""
        if self.pids.exists():
            wait_for_end(list(json.loads(self.pids.read_text()).values()), LEFTOVER_SECONDS)

    def secret(self, name: str, make: Callable[[], Any]) -> Any:
        """A value that is made once and stored."""
        if name not in self.state:
            self.remember(name, make())
        return self.state[name]

    def port(self, name: str) -> int:
        """The port of the last start if it is free, else another."""
        key = f"{name}_port"
        if not ports.is_free(self.state.get(key, 0)):
            del self.state[key]
        return int(self.secret(key, ports.pick))

    def remember(self, name: str, value: Any) -> None:
        self.state[name] = value
        write_private(self.state_file, json.dumps(self.state, indent=2) + "\n")


def private(path: Path) -> Path:
    """A file, made if it is missing, that only its owner can read."""
    path.touch()
    path.chmod(0o600)
    return path


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically; only its owner can read it."""
    scratch = path.with_suffix(SCRATCH)
    scratch.touch(mode=0o600)
    scratch.write_text(text)
    scratch.replace(path)


def _create_folder(folder: Path) -> None:
    """Create the folder, or use one that is empty or belongs to an instance. Raises StartError, OSError."""
    if any(category(letter) in NOT_IN_A_LINE for letter in str(folder)):
        raise StartError(f"DATA_DIR={str(folder)!r} has a line break or another character without a form.")
    if not folder.exists():
        folder.mkdir(parents=True)
    elif not (folder / STATE_FILE).exists() and any(entry.name not in BEGUN for entry in folder.iterdir()):
        raise StartError(f"{folder} contains other files. Choose an empty or a new folder as DATA_DIR.")
    # If root starts the instance, PostgreSQL runs as user `nobody`, which needs access to its folder.
    folder.chmod(0o711 if os.geteuid() == 0 else 0o700)


def wipe(folder: Path) -> bool:
    """Remove all data of an instance, if any. Raises StartError, also while it runs."""
    if not folder.exists():
        return False
    with Instance(folder):
        shutil.rmtree(fallback_home(folder), ignore_errors=True)
        shutil.rmtree(folder)
    return True
