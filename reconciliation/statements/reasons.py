"""Why a line or a file cannot be read, in the language of the person who looks at it.

Reasons are stored in English, with the values in them, as the command prints them. `reasons.txt` has each of
them again, for the translation: a test compares both.
"""

import re
from pathlib import Path

from django.utils.translation import gettext

_LINES = Path(__file__).with_name("reasons.txt").read_text("utf-8").splitlines()
TEXTS = [line for line in _LINES if line and not line.startswith("#")]


def translated(reason: str) -> str:
    """The reason in the language of the present request. A text that is no reason stays as it is."""
    for text, pattern in _PATTERNS:
        if found := pattern.fullmatch(reason):
            return gettext(text) % {name: translated(value) for name, value in found.groupdict().items()}
    return reason


# The most exact one first.
_PATTERNS = [
    (text, re.compile(re.sub(r"%\\\((\w+)\\\)s", r"(?P<\1>.+)", re.escape(text)), re.DOTALL))
    for text in sorted(TEXTS, key=lambda text: text.count("%("))
]
