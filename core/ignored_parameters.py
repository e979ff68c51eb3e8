"""`Ignored-Parameters`: names the unknown fields and query parameters of a request.

It is a structured header (RFC 9651): a list of strings with the nearest known name, such as
`"refernce";did-you-mean="reference"`. A name beyond ASCII is a display string, `%"%e0%b8%81"`.
The token `more` at the end has the number of further names.
"""

from collections.abc import Collection
from difflib import get_close_matches

from core.logs import redact

HEADER = "Ignored-Parameters"
MAX_NAMES = 10
MAX_NAME_LENGTH = 40
SIMILARITY = 0.7


def header(ignored: Collection[str], known: Collection[str]) -> str:
    """The value of the header. It is safe: only printable ASCII, and at most 10 names of 40 characters."""
    members = [_member(name, known) for name in list(ignored)[:MAX_NAMES]]
    left = len(ignored) - len(members)
    return ", ".join([*members, *([f"more;count={left}"] if left else [])])


def _member(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name[:MAX_NAME_LENGTH].lower(), known, 1, SIMILARITY)
    hint = f";did-you-mean={_string(near[0])}" if near else ""
    return _string(redact(name)[:MAX_NAME_LENGTH]) + hint


def _string(text: str) -> str:
    """A string of RFC 9651, or a display string if it is not printable ASCII."""
    if text.isascii() and text.isprintable():
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return '%"' + "".join(_encoded(byte) for byte in text.encode(errors="replace")) + '"'


def _encoded(byte: int) -> str:
    is_plain = 0x20 <= byte < 0x7F and chr(byte) not in '%"'
    return chr(byte) if is_plain else f"%{byte:02x}"
