"""Recorded statements of whole lives as scripts for pgbench, which repeats them with new values.

Texts, types and parameters are those that the service sends. What was new in the recorded life is new in each
repetition: ids, references, transaction ids, names of locks, and instants. Other values repeat, such as
amounts and sealed texts.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

BEGIN, COMMIT = "BEGIN", "COMMIT"
ID = re.compile(r"([a-z]{2,3}_)[0-9A-Za-z]{27}")
INSTANT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?\+00:00")
LARGE_NUMBER = re.compile(r"-?[0-9]{15,19}")
NEW = re.compile(rf"\b{ID.pattern}\b|(?<!\w){LARGE_NUMBER.pattern}(?!\w)")
# Ids begin with the second, like those of the service, so that indexes grow at their ends.
DRAW = "\\set n random(1, 9000000000000000000)\n"
DRAWN = "(SELECT :n::bigint AS n, :client_id::int % {shops} + 1 AS shop) drawn"
DIGITS, SECOND = "lpad(n::text, 19, '0')", "extract(epoch FROM now())::bigint"
# PostgreSQL draws the lease of a claim: the columns of the result become variables.
CLAIM, LEASE_ID = "gen_random_uuid()", ":lease_id"


@dataclass(frozen=True)
class Value:
    """A parameter as text, or None for NULL. type: its SQL type, or empty if its place decides."""

    text: str | None
    type: str = ""


@dataclass(frozen=True)
class Statement:
    """sql: with a `%s` for each value."""

    sql: str
    values: Sequence[Value] = ()


@dataclass(frozen=True)
class Life:
    """The statements of one life.

    earlier: those of another life of the same shop, which show what is new. names: new texts besides ids and
    large numbers. lease_id: what its claim drew, without hyphens. shops: the texts, such as ids, in which
    shops differ; the first shop is that of the life.
    """

    statements: Sequence[Statement]
    earlier: Sequence[Statement]
    names: Sequence[str]
    started_at: str
    lease_id: str
    shops: Sequence[Sequence[str]]

    @property
    def new_texts(self) -> list[str]:
        """What is new in this life."""
        earlier = _names(self.earlier)
        return [*self.names, *(name for name in _names(self.statements) if name not in earlier)]


def _names(statements: Sequence[Statement]) -> dict[str, None]:
    """Ids and large numbers, in their order."""
    texts = (value.text for each in statements for value in each.values if value.text is not None)
    return {found[0]: None for text in texts for found in NEW.finditer(text)}


class Script:
    """A script for pgbench. `variables` has the values that repeat, by name, as options of pgbench."""

    def __init__(self, life: Life) -> None:
        self._started_at = life.started_at
        self._names: dict[str, str] = {}
        self._drawn: dict[str, str] = {}
        numbers = dict[str, int]()  # ids that share their characters, such as those of a code, still do
        self._replaced = {
            name: _new_text(name, numbers.setdefault(name[-27:], len(numbers))) for name in life.new_texts
        }
        self._replaced |= {
            texts[0]: f"(ARRAY[{', '.join(map(_quoted, texts))}])[shop]"
            for texts in zip(*life.shops, strict=True)
        }
        self._lease_id = life.lease_id
        body = "".join(self._line(each) for each in life.statements)
        columns = ", ".join(f"{expression} AS {name}" for expression, name in self._drawn.items())
        self.text = f"{DRAW}SELECT {columns} FROM {DRAWN.format(shops=len(life.shops))} \\gset\n{body}"

    @property
    def variables(self) -> dict[str, str]:
        return {name: text for text, name in self._names.items()}

    def _line(self, statement: Statement) -> str:
        first, *parts = statement.sql.split("%s")
        sql = first + "".join(
            self._mark(value) + part for value, part in zip(statement.values, parts, strict=True)
        )
        end = " \\gset\n" if CLAIM in sql else ";\n"
        return sql.replace("%%", "%").strip() + end

    def _mark(self, value: Value) -> str:
        if value.text is None:
            return "NULL"
        cast = f"::{value.type}" if value.type else ""
        if value.text == "":  # pgbench has no empty variables
            return f"''{cast}"
        if self._lease_id in value.text:
            return f"({_expression(value.text, {self._lease_id: LEASE_ID})}){cast}"
        return f":{self._variable(value.text)}{cast}"

    def _variable(self, text: str) -> str:
        instants = {each: _new_instant(each, self._started_at) for each in INSTANT.findall(text)}
        expression = _expression(text, self._replaced | instants)
        if expression == _quoted(text):
            return self._names.setdefault(text, f"c{len(self._names)}")
        return self._drawn.setdefault(expression, f"v{len(self._drawn)}")


def _expression(text: str, replaced: Mapping[str, str]) -> str:
    """An SQL expression of a text in which some parts are replaced by expressions."""
    found = [part for part in replaced if part in text]
    if not found:
        return _quoted(text)
    pieces = re.split("(" + "|".join(map(re.escape, sorted(found, key=len, reverse=True))) + ")", text)
    return " || ".join(replaced[piece] if piece in replaced else _quoted(piece) for piece in pieces if piece)


def _quoted(text: str) -> str:
    """A literal. pgbench would take a colon and a letter for a variable."""
    escaped = text.replace("\\", "\\\\").replace("'", "''").replace(":", "\\x3a")
    return f"E'{escaped}'"


def _new_text(name: str, number: int) -> str:
    """An expression for a new text of the same form. number: of the text in its life."""
    if LARGE_NUMBER.fullmatch(name):
        return f"(n + {number})::text"
    unique = f"{SECOND} || right({DIGITS}, 15) || '{number:02}'"
    found = ID.fullmatch(name)
    return f"'{found[1]}' || {unique}" if found else f"right({unique}, {len(name)})"


def _new_instant(text: str, started_at: str) -> str:
    """An expression for an instant that is as long after now as the recorded one was after the start."""
    after = datetime.fromisoformat(text) - datetime.fromisoformat(started_at)
    return f"(now() + interval '{after.total_seconds()} seconds')::text"
