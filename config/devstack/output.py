"""Our own output. Whoever reads it may be slow or gone; that must not stop the service."""

import os
import select
import sys
from contextlib import suppress

# A pipe that is ready for writing takes this much at once (PIPE_BUF, pipe(7)).
CHUNK_BYTES = 4096
NAME_WIDTH = 8


def print_line(name: str, text: str) -> None:
    """Print one line under the name of who says it."""
    print_text(f"{name:<{NAME_WIDTH}} | {text}")


def print_text(text: str) -> None:
    """Print a text, or as much of it as is read."""
    rest, output = f"{text}\n".encode(), sys.stdout.fileno()
    with suppress(OSError):
        while rest and select.select([], [output], [], 0)[1]:
            rest = rest[os.write(output, rest[:CHUNK_BYTES]) :]
