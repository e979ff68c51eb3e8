import gc
import os
import pwd
import shutil
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import CommandError
from django.db import DatabaseError

from audit_trail.acts import ActRefused
from banks.base import UnknownBank
from core import clock, money, request_context
from core.commands import ProgressBar, SealingCommand
from core.console import csv_cells
from core.console.csv_cells import escape_cell
from reconciliation.models import LineResult
from reconciliation.statements import importing, statement_file, undo
from reconciliation.statements.lines import FileLine, FileProblems, InvalidStatementFile, ReaderBusy
from reconciliation.statements.statement_file import StatementFile

IMPORT_AGAIN = "What is stored stays; import it again."
STDIN = "-"
DEFAULT_ACTOR = "command:import_statement"
MAX_NAME_LENGTH = 150
MAX_REASON_LENGTH = 500
COLUMNS = ("file", "line", "result", "bank_transaction_id", "match_result", "why")


class Command(SealingCommand):
    help = (
        "Import statement files of a bank: each line joins its bank transaction or creates one. Safe to "
        "repeat and to interrupt. Fails if a line cannot be read, or the totals of a file differ."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="*", metavar="FILE", help=f"'{STDIN}' reads standard input.")
        parser.add_argument("--bank", help="Name of the bank, such as sandbox.")
        parser.add_argument(
            "--format", choices=statement_file.FORMATS, help="Default: detected from the content."
        )
        parser.add_argument("--results", metavar="FILE.csv", help="Write the result of each line there.")
        parser.add_argument(
            "--by",
            metavar="NAME",
            default=_system_user(),
            help="User name in the console of the person who imports. They cannot confirm its money. "
            "Default: the user of the operating system.",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Say what would happen, and import nothing."
        )
        parser.add_argument(
            "--undo",
            metavar="STATEMENT",
            help="Undo an import (stm_...) that nobody has acted on; with --reason.",
        )
        parser.add_argument("--reason", default="", help="Of --undo, for the audit trail.")
        parser.add_argument("--quiet", action="store_true", help="Print nothing without errors.")

    def handle(self, *args: Any, **options: Any) -> None:
        gc.freeze()  # full garbage collections of all modules took an eighth of the time
        failures, name = 0, options["by"]
        if name is not None and not (0 < len(name) <= MAX_NAME_LENGTH and name.isprintable()):
            raise CommandError(f"--by: give a name of at most {MAX_NAME_LENGTH} characters.")
        request_id = request_context.request_id_for("")  # of this import alone, so that it can be undone
        request_context.begin(actor=f"staff:{name}" if name else DEFAULT_ACTOR, request_id=request_id)
        if options["undo"]:
            self._undo(options)
            return
        if not (options["bank"] and options["files"]):
            raise CommandError("Name the bank (--bank) and the files.")
        results_path = Path(options["results"] or os.devnull)
        imported = [path for path in map(Path, options["files"]) if path.exists()]
        if options["results"] and results_path.exists() and any(map(results_path.samefile, imported)):
            raise CommandError("--results: this is a file to be imported, and would be overwritten.")
        with _results_writer(results_path) as results:
            for path in options["files"]:
                name = os.fsencode(path).decode(errors="replace")  # the system allows any bytes
                try:
                    failures += not self._import(path, name, results, options)
                except (InvalidStatementFile, ReaderBusy, OSError) as error:
                    failures += 1
                    reason = f"{error.strerror}." if isinstance(error, OSError) else error
                    self.stderr.write(f"{name}: {reason}", self.style.ERROR)
                except UnknownBank as error:
                    raise CommandError(f"No merchant has the bank {options['bank']!r}.") from error
                except DatabaseError as error:
                    raise CommandError(
                        f"{name}: {str(error).strip().splitlines()[0]}. {IMPORT_AGAIN}"
                    ) from None
                except KeyboardInterrupt:
                    raise CommandError(f"Interrupted. {IMPORT_AGAIN}", returncode=130) from None
        if failures:
            raise CommandError(f"Files with errors: {failures} of {len(options['files'])}.")

    def _import(self, path: str, name: str, results: Any, options: dict[str, Any]) -> bool:
        """Whether the file has no errors."""
        with _open_input(path) as stream:
            file = statement_file.open_file(stream, Path(name).name, options["format"])
            if options["dry_run"]:
                return self._try(file, name, results, bank=options["bank"])
            statement = importing.begin(file, bank=options["bank"], now=clock.now())
            bar, unreadable = ProgressBar(self.stderr, name, lambda: statement.line_count), FileProblems()

            def on_batch(batch: Sequence[FileLine]) -> None:
                results.writerows(_row(name, line) for line in batch)
                for line in batch:
                    if line.error:
                        unreadable.add(f"Line {line.number} cannot be read: {line.error}.")
                bar.advance(len(batch))

            counts = importing.run(file, statement, clock=clock.now, on_batch=on_batch)
            bar.clear()
        for problem in (*unreadable, *statement.problems.splitlines()):
            self.stderr.write(f"{name}: {problem}", self.style.ERROR)
        is_clean = not (counts[LineResult.UNREADABLE] or statement.problems)
        if not (options["quiet"] and is_clean):
            parts = ", ".join(f"{counts[result]} {result}" for result in importing.RESULTS if counts[result])
            text = f"{counts.total()} lines: {parts}" if parts else "no lines"
            self.stdout.write(f"{name}: {text} (statement {statement.id})")
        return is_clean

    def _try(self, file: StatementFile, name: str, results: Any, *, bank: str) -> bool:
        """Print what an import would do. Whether all lines can be read."""
        found, tried = importing.check(file, bank=bank), importing.DryRun()
        for batch in importing.dry_run(file, bank=bank, now=clock.now()):
            tried.add(batch)
            results.writerows(_row(name, line) for line in batch)
        for words, count, amount in tried.outcomes:
            self.stdout.write(f"{name}: {count} {words} ({money.display(amount)})")
        for problem in found.problems:
            self.stderr.write(f"{name}: {problem}", self.style.ERROR)
        self.stdout.write(f"{name}: {found.line_count} lines. Nothing was imported.")
        return not (found.unreadable_count or found.problems.messages)

    def _undo(self, options: dict[str, Any]) -> None:
        if not 0 < len(reason := options["reason"].strip()) <= MAX_REASON_LENGTH:
            raise CommandError(f"--reason: say why, in at most {MAX_REASON_LENGTH} characters.")
        try:
            self.stdout.write(undo.undo(options["undo"], note=reason, now=clock.now()))
        except ActRefused as refusal:
            raise CommandError(f"{refusal} Nothing changed.") from None


def _system_user() -> str | None:
    """Return the owner of the process; ignore the environment. None if the system has no name for it."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return None


def _row(name: str, line: FileLine) -> list[str]:
    matched = (
        (line.bank_transaction.id, line.bank_transaction.match_result) if line.bank_transaction else ("", "")
    )
    return list(map(escape_cell, (name, str(line.number), line.result, *matched, line.error)))


@contextmanager
def _results_writer(path: Path) -> Iterator[Any]:
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv_cells.writer(file)
            writer.writerow(COLUMNS)
            yield writer
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}.") from None


@contextmanager
def _open_input(name: str) -> Iterator[BinaryIO]:
    """The file, or standard input copied to disk, because it is read more than once."""
    if name != STDIN:
        with Path(name).open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as spooled:
        shutil.copyfileobj(sys.stdin.buffer, spooled)
        yield spooled
