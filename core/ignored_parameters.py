"""`Ignored-Parameters`: names the unknown fields and query parameters of a request.

It is a structured header (RFC 9651): a list of strings with the nearest known name, such as
`"refernce";did-you-mean="reference"`. A name beyond ASCII is a display string, `%"%e0%b8%81"`.
The token `more` at the end has the number of further names. A field of an object within the body has the
name of the object before it: `"destination.bank_acount"`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from core.logs import redact
from core.openapi import Operation

HEADER = "Ignored-Parameters"
MAX_NAMES = 10
MAX_NAME_LENGTH = 40
SIMILARITY = 0.7


class Ignored(NamedTuple):
    """An unknown name. A field of an object within the body has the path of the object before it."""

    name: str
    known: Collection[str]
    path: str = ""


def header_of(operation: Operation, body: Mapping[str, Any], query: Iterable[str]) -> str:
    """The header of a request with this body and these query parameters, or empty if all are known."""
    return header([*_of_body(operation, body), *_of_query(operation, query)])


def _of_body(operation: Operation, body: Mapping[str, Any]) -> Iterator[Ignored]:
    known = operation.body_fields | operation.query_fields
    yield from (Ignored(name, known) for name in body if name not in operation.body_fields)
    for field, names in operation.nested_fields.items():
        nested = body.get(field)
        if isinstance(nested, dict):
            yield from (Ignored(name, names, f"{field}.") for name in nested if name not in names)


def _of_query(operation: Operation, query: Iterable[str]) -> Iterator[Ignored]:
    known = operation.body_fields | operation.query_fields
    for name in query:
        field, bracket, _key = name.partition("[")
        if field not in (operation.keyed_parameters if bracket else operation.query_fields):
            yield Ignored(name, known)


def header(ignored: list[Ignored]) -> str:
    """The value of the header. It is safe: only printable ASCII, and at most 10 names of 40 characters."""
    members = [_member(each) for each in ignored[:MAX_NAMES]]
    left = len(ignored) - len(members)
    return ", ".join([*members, *([f"more;count={left}"] if left else [])])


def _member(ignored: Ignored) -> str:
    name, known, path = ignored
    near = get_close_matches(name[:MAX_NAME_LENGTH].lower(), known, 1, SIMILARITY)
    hint = f";did-you-mean={_string(path + near[0])}" if near else ""
    return _string(path + redact(name)[: MAX_NAME_LENGTH - len(path)]) + hint


def _string(text: str) -> str:
    """A string of RFC 9651, or a display string if it is not printable ASCII."""
    if text.isascii() and text.isprintable():
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return '%"' + "".join(_encoded(byte) for byte in text.encode(errors="replace")) + '"'


def _encoded(byte: int) -> str:
    is_plain = 0x20 <= byte < 0x7F and chr(byte) not in '%"'
    return chr(byte) if is_plain else f"%{byte:02x}"
