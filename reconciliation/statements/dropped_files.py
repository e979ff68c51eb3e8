"""Import the statement files that somebody, or a program, put into the folder STATEMENTS_DIR.

A file is in the folder of its bank, such as `scb/2026-11-25.csv`. Afterwards it is in `scb/imported`, or in
`scb/failed` if it has errors. To import a file again does no harm: one that cannot be moved is imported
every night, and reported each time.
"""

import logging
import time
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

import banks
from banks.base import UnknownBank
from core import clock, request_context
from reconciliation.models import LineResult
from reconciliation.statements import importing, statement_file
from reconciliation.statements.lines import InvalidStatementFile, ReaderBusy

log = logging.getLogger("reconciliation")
QUIET_SECONDS = 30.0  # a file that changed within this time may still be written
IMPORTED, FAILED = "imported", "failed"
ACTOR = "command:import_statement"


def import_all() -> Iterator[str]:
    """Import all files. Yields a text for each problem. Raises NotADirectoryError."""
    root = Path(settings.STATEMENTS_DIR)
    if not root.is_dir():
        raise NotADirectoryError(f"STATEMENTS_DIR {root} is no folder")
    request_context.set_actor(ACTOR)
    for bank in sorted(banks.configured_banks()):
        yield from _import_folder(root / bank, bank)


def _import_folder(folder: Path, bank: str) -> Iterator[str]:
    try:
        waiting = _waiting_files(folder)
    except OSError as error:
        yield f"{bank}: the folder cannot be read: {error.strerror}"
        return
    for path in waiting:
        try:
            problem = _import_file(path, bank)
        except ReaderBusy as busy:  # the file stays for the next night
            yield f"{bank} {path.name}: {busy}"
            continue
        if problem:
            yield f"{bank} {path.name}: {problem}"
        try:
            _move(path, FAILED if problem else IMPORTED)
        except OSError as error:
            yield f"{bank} {path.name}: the file cannot be moved: {error.strerror}"


def _waiting_files(folder: Path) -> list[Path]:
    """The files that are complete, by name. A bank without a folder has none."""
    before = time.time() - QUIET_SECONDS
    listed = folder.iterdir() if folder.exists() else ()
    found = [path for path in listed if path.is_file() and not path.name.startswith(".")]
    return sorted(path for path in found if path.stat().st_mtime <= before)


def _import_file(path: Path, bank: str) -> str:
    """What is wrong with the file, or an empty text. Raises ReaderBusy."""
    try:
        with path.open("rb") as stream:
            file = statement_file.open_file(stream, path.name)
            statement = importing.begin(file, bank=bank, now=clock.now())
            counts = importing.run(file, statement, clock=clock.now)
    except (InvalidStatementFile, OSError) as error:
        return error.strerror or type(error).__name__ if isinstance(error, OSError) else str(error)
    except UnknownBank:
        return "no merchant has this bank"
    log.info("%s: imported as %s: %s", path.name, statement.id, dict(counts))
    count = counts[LineResult.UNREADABLE]
    unreadable = [f"{count} lines cannot be read"] if count else []
    return "; ".join([*statement.problems.splitlines(), *unreadable])


def _move(path: Path, folder: str) -> None:
    """An older file with the same name stays: the new one gets the time in its name."""
    target = path.parent / folder / path.name
    target.parent.mkdir(exist_ok=True)
    if target.exists():
        target = target.with_name(f"{clock.now():%Y%m%dT%H%M%S}-{path.name}")
    path.replace(target)
