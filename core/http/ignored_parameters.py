"""`Ignored-Parameters`: names the unknown fields and query parameters of a request.

It is a structured header (RFC 9651): a list of strings with the nearest known name, such as
`"refernce";did-you-mean="reference"`. A name beyond ASCII is a display string, `%"%e0%b8%81"`.
The token `more` at the end has the number of further names. A field of an object within the body has the
name of the object before it: `"destination.bank_acount"`.
"""

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from core.http.fields import QueryMetadata
from core.http.openapi import Operation
from core.observing.logs import redact

HEADER = "Ignored-Parameters"
MAX_NAMES = 10
MAX_NAME_LENGTH = 40
SIMILARITY = 0.7
PLAIN = {chr(byte) for byte in range(0x20, 0x7F)} - set('%"')


def header_of(operation: Operation, body: Mapping[str, Any], query: Iterable[str]) -> str:
    """The header of a request with this body and these query parameters, or empty if all are known.

    It is safe: only printable ASCII, and at most 10 names of 40 characters.
    """
    body_fields, query_fields = operation.body_reader.fields, operation.query_reader.fields
    known = [*body_fields, *query_fields]
    # Each with the known names beside it, and with the path of the object that it is in.
    found: list[tuple[str, Collection[str], str]] = []
    nested: list[tuple[str, Collection[str], str]] = []  # after all others of the body
    for name, value in body.items():
        if name not in body_fields:
            found.append((name, known, ""))
        elif isinstance(value, dict) and (names := getattr(body_fields[name], "fields", None)):
            nested += [(inner, names, f"{name}.") for inner in value if inner not in names]
    found += nested
    for name in query:
        field, bracket, _key = name.partition("[")
        if field not in query_fields or (bracket and not isinstance(query_fields[field], QueryMetadata)):
            found.append((name, known, ""))
    members = [_member(*each) for each in found[:MAX_NAMES]]
    left = len(found) - len(members)
    return ", ".join([*members, *([f"more;count={left}"] if left else [])])


def _member(name: str, known: Collection[str], path: str) -> str:
    near = get_close_matches(name[:MAX_NAME_LENGTH].lower(), known, 1, SIMILARITY)
    hint = f";did-you-mean={_string(path + near[0])}" if near else ""
    return _string(path + redact(name)[: MAX_NAME_LENGTH - len(path)]) + hint


def _string(text: str) -> str:
    """A string of RFC 9651, or a display string if it is not printable ASCII."""
    if text.isascii() and text.isprintable():
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    encoded = (chr(byte) if chr(byte) in PLAIN else f"%{byte:02x}" for byte in text.encode(errors="replace"))
    return f'%"{"".join(encoded)}"'
