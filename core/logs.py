"""One JSON object a line; secrets and personal data are struck out before they are written."""

import json
import logging
import re

_SECRETS = re.compile(
    r"(tq_(?:test|live)_[0-9A-Za-z]{8})[0-9A-Za-z]+|(whsec_)[0-9A-Za-z+/=]+|(Bearer\s+)\S+|(://[^:/@\s]*:)[^/\s]+(?=@)"
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
        if record.name == "access":
            return record.getMessage()
        line = {
            "at": record.created,
            "log": record.name,
            "level": record.levelname,
            "message": redact(record.getMessage()),
            "request_id": getattr(record, "request_id", None),
        }
        if record.exc_info:
            line["error"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)
