"""Folders in memory for the data of servers: on a disk each commit would wait for it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")
NEEDED = 4 << 30  # containers often have less


@contextmanager
def server_folder(prefix: str) -> Iterator[Path]:
    """A new folder, in memory if there is enough, which every account may pass. It is deleted at the end."""
    is_large = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > NEEDED
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=MEMORY if is_large else None))
    folder.chmod(0o711)  # servers do not run as root
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
