"""One JSON object a line; secrets and personal data are struck out before they are written."""

import json
import logging
import re
import threading
import time
from contextlib import suppress
from typing import TextIO

from core import origin
from core.postgres.away import is_away

GATHER_SECONDS = 0.1
READY_MADE = {"access", "security"}  # loggers whose messages are JSON objects already
MOST_NAMES = 4096
_SECRETS = re.compile(
    r"(tq_(?:test|live)_[0-9A-Za-z]{8})[0-9A-Za-z]+|(whsec_)[0-9A-Za-z+/=]+|(door_)[0-9A-Za-z]+|(Bearer\s+)\S+|(://[^:/@\s]*:)[^/\s]+(?=@)"
)
_LONG_DIGITS = re.compile(r"(?<![0-9A-Za-z])\d{6,15}(\d{4})(?![0-9A-Za-z])")


def redact(text: str) -> str:
    """`text` without keys, webhook secrets, passwords in URLs, and with account numbers cut to 4 digits."""
    struck = _SECRETS.sub(
        lambda m: next(group for group in m.groups() if group is not None) + "[redacted]", text
    )
    return _LONG_DIGITS.sub(r"...\1", struck)


class JsonLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        if record.name in READY_MADE:
            return record.getMessage()
        line = {
            "at": record.created,
            "log": record.name,
            "level": record.levelname,
            "message": redact(record.getMessage()),
            "request_id": getattr(record, "request_id", None) or origin.current().request_id or None,
        }
        if record.exc_info:
            line["error"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


class Gathering(logging.StreamHandler[TextIO]):
    """Writes access lines a tenth of a second's worth at a time, everything else at once.

    A write for each would wake whoever reads them each time, which costs more than the line.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self._lines: list[str] = []
        self._some = threading.Event()
        self._writer: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != "access":
            return super().emit(record)
        self._lines.append(self.format(record) + self.terminator)
        self._some.set()
        # A fork of the server has this object, but not its thread.
        if self._writer is None or not self._writer.is_alive():
            self._writer = threading.Thread(target=self._run, name="access log", daemon=True)
            self._writer.start()
        return None

    def flush(self) -> None:
        with self.lock or threading.RLock():
            lines, self._lines = self._lines, []
            self.stream.write("".join(lines))
        super().flush()

    def _run(self) -> None:
        while self._some.wait():
            time.sleep(GATHER_SECONDS)
            self._some.clear()
            with suppress(OSError, ValueError):  # nobody reads any more
                self.flush()


class LineLimit:
    """Lets `per_second` lines of one name pass in each second, and counts the others."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._names: dict[str, tuple[int, int, int]] = {}
        self._lock = threading.Lock()

    def admit(self, name: str) -> int | None:
        """How many lines of this name were left out since the last one that passed; None leaves it out."""
        second = int(time.time())
        with self._lock:
            # Strangers choose the names: forget them all before they fill the memory.
            if name not in self._names and len(self._names) >= MOST_NAMES:
                self._names.clear()
            began, passed, left_out = self._names.get(name, (second, 0, 0))
            passed = passed if began == second else 0
            if passed >= self._per_second:
                self._names[name] = (second, passed, left_out + 1)
                return None
            self._names[name] = (second, passed + 1, 0)
            return left_out


class DatabaseAway(logging.Filter):
    """While the database is away everything fails alike: one line a second, not a traceback for each."""

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self._limit = LineLimit(1)

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not is_away(error):
            return True
        left_out = self._limit.admit("database")
        if left_out is None:
            return False
        reason = str(error).strip().partition("\n")[0]
        record.msg, record.args = "The database is away: %s (%d more failed alike)", (reason, left_out)
        record.exc_info = record.exc_text = None
        return True
