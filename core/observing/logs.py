"""Logs as one JSON object a line, without secrets and personal data."""

import json
import logging
import re
import threading
import time

from core import request_context
from core.database.availability import is_unavailable

PREFORMATTED_LOGGERS = {"security"}  # loggers whose messages are JSON objects already
MAX_NAMES = 4096
_SECRETS = re.compile(
    r"(tq_(?:test|live)_[0-9A-Za-z]{8})[0-9A-Za-z]+|(whsec_)[0-9A-Za-z+/=]+|(bep_|clt_)[0-9A-Za-z]+|(Bearer\s+)\S+|(://[^:/@\s]*:)[^/\s]+(?=@)"
)
# PostgreSQL puts values of the row, such as names, into these parts of an error, of one or more lines.
_ROWS = re.compile(
    r"^(DETAIL|CONTEXT):.*?(?=^(?:HINT|CONTEXT|\s+File |\S+Error|The above|During)|\Z)",
    re.DOTALL | re.MULTILINE,
)
_LONG_DIGITS = re.compile(r"(?<![0-9A-Za-z])\d{6,15}(\d{4})(?![0-9A-Za-z])")


def redact(text: str) -> str:
    """Without rows, keys, webhook secrets and passwords in URLs, and with 4 digits of account numbers."""
    without_secrets = _SECRETS.sub(
        lambda m: next(group for group in m.groups() if group is not None) + "[redacted]",
        _ROWS.sub("\\1: [redacted]\n", text),
    )
    return _LONG_DIGITS.sub(r"...\1", without_secrets)


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        if record.name in PREFORMATTED_LOGGERS:
            return record.getMessage()
        line = {
            "at": record.created,
            "log": record.name,
            "level": record.levelname,
            "message": redact(record.getMessage()),
            "request_id": getattr(record, "request_id", None) or request_context.current().request_id or None,
        }
        if record.exc_info:
            line["error"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


class LogRateLimit:
    """Allows `per_second` lines of one name in each second, and counts the others."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._names: dict[str, tuple[int, int, int]] = {}
        self._lock = threading.Lock()

    def admit(self, name: str, at: float | None = None) -> int | None:
        """How many lines of this name were suppressed since the last one. None: suppress this one too.

        `at`: the Unix time that the line shows, so that lines and seconds agree; now if it is missing.
        """
        second = int(time.time() if at is None else at)
        with self._lock:
            # Clients choose the names: forget all of them before they fill the memory.
            if name not in self._names and len(self._names) >= MAX_NAMES:
                self._names.clear()
            began, passed, suppressed = self._names.get(name, (second, 0, 0))
            passed = passed if began == second else 0
            if passed >= self._per_second:
                self._names[name] = (second, passed, suppressed + 1)
                return None
            self._names[name] = (second, passed + 1, 0)
            return suppressed


class DatabaseDownFilter(logging.Filter):
    """Logs one line a second, and no tracebacks, while the database cannot be reached."""

    def __init__(self, name: str = "") -> None:
        super().__init__(name)
        self._limit = LogRateLimit(1)

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not is_unavailable(error):
            return True
        suppressed = self._limit.admit("database", record.created)
        if suppressed is None:
            return False
        reason = str(error).strip().partition("\n")[0]
        record.msg, record.args = "The database is away: %s (%d more failed alike)", (reason, suppressed)
        record.exc_info = record.exc_text = None
        return True
