"""Read payments in files of other gateways: only what `forms.toml` names, so no names and cards of payers."""

import base64
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import partial, reduce
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from core import dates, money
from core.console.csv_cells import unescape_cell
from reconciliation.statements import cells, text_files
from reconciliation.statements.lines import InvalidStatementFile, Record

FORMS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("forms.toml").read_text("utf-8"))
NEEDED = ("id", "amount", "paid_at")
MAX_LINE, MAX_TEXT = text_files.MAX_RECORD_CHARACTERS, 255
MAX_SATANG = 10**13  # as in statements; SQLite adds up to 10**18
_json = partial(json.loads, parse_float=str)  # amounts keep their decimals
_AMOUNT = re.compile(r"-?(\d{1,15}|\d{1,3}(,\d{3}){1,4})(\.\d{1,9})?", re.ASCII)
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")  # PostgreSQL refuses one, and terminals obey others
_ZONE = re.compile(r"([Zz]|[+-]\d\d:?\d\d)$", re.ASCII)
_TIMES = {
    r"^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$": r"\1-\2-\3 \4:\5:\6",
    r"^(\d\d)/(\d\d)/(\d{4}) (\d\d):?(\d\d):?(\d\d)$": r"\3-\2-\1 \4:\5:\6",
}


class Row(NamedTuple):
    """values: by our names. columns: how the file calls them."""

    line: int
    values: dict[str, str]
    columns: dict[str, str]
    form: dict[str, Any]

    def payment(self, file: str) -> str | tuple[Any, ...]:
        """A row of `reports` in `comparison.sql`, or why it is none. Raises InvalidStatementFile."""
        values, paid, kinds = self.values, self.form["paid"], self.form.get("kinds")
        if kinds and values.get("kind", kinds[0]).lower() not in kinds:
            return "of another kind than payments"
        if values.get("currency", "").upper() not in ("", money.CURRENCY):
            return "in another currency"
        if ((amount := self._satang("amount")) or 0) <= 0:
            return "without a positive amount"
        is_paid = values.get("status", paid[0]).lower() in paid
        if not is_paid and not values["paid_at"]:
            return "that were not paid, without a time"
        values["paid_at"] += f" {values['time']}" if "time" in values else ""
        net = self._satang("net")
        return (
            values["id"] or self._parsed("id", str.index),
            values.get("reference", ""),
            amount,
            is_paid,
            int(self._parsed("paid_at", _instant).timestamp()),
            *(self._satang("fee"), self._satang("fee_vat")),
            None if net is None else net - (self._satang("withheld") or 0),
            f"{file} line {self.line}",
        )

    def _satang(self, name: str) -> int | None:
        return self._parsed(name, _satang) if self.values.get(name) else None

    def _parsed(self, name: str, parse: Any) -> Any:
        """A refusal does not quote the text, which may be personal data."""
        try:
            return parse(self.values[name], self.form["unit" if parse is _satang else "zone"])
        except (ValueError, OverflowError) as error:
            reason = error if isinstance(error, dates.BuddhistYear) else "it cannot be read"
            where = f"line {self.line}, column {self.columns[name]}"
            raise InvalidStatementFile(f"{where}: {reason}") from None


class GatewayFiles:
    """skipped: how many rows are no payments in baht, by reason. unread: columns that nothing reads.

    lacks_reference: no file has the named place of the reference.
    """

    def __init__(self, gateway: str, reference: str = "") -> None:
        self.skipped, self.unread = Counter[str](), dict[str, None]()
        self.lacks_reference, own = bool(reference), {"reference": [reference]} if reference else {}
        self.forms = {
            kind: form | {"columns": form["columns"] | own} for kind, form in FORMS[gateway].items()
        }

    def read(self, path: Path) -> Iterator[tuple[Any, ...]]:
        """The payments of a file. Raises InvalidStatementFile, OSError."""
        file = _text(path.name)
        with path.open("rb") as stream:
            encoding = text_files.find_encoding(stream)
            stream.seek(0)
            start = stream.read(MAX_LINE).decode(encoding, "replace").lstrip()
            separator = max(text_files.SEPARATORS.values(), key=start.partition("\n")[0].count)
            with closing(text_files.read_records(stream, encoding, separator)) as records:
                rows = self._events(path, encoding) if start.startswith("{") else self._rows(records)
                try:
                    for row in rows:
                        found = row.payment(file)
                        if isinstance(found, str):
                            self.skipped[found] += 1
                        else:
                            yield found
                except InvalidStatementFile as error:
                    raise InvalidStatementFile(f"{file}: {error}") from None

    def _rows(self, records: Iterator[Record]) -> Iterator[Row]:
        form, first = self.forms["csv"], next(records, Record(1, [], b""))
        has_names = form.get("has_names", True)
        header = [_text(name) if has_names else str(number) for number, name in enumerate(first.cells, 1)]
        plain = [_plain_name(name) for name in header]
        places = {name: place for place, name in enumerate(plain)}
        names = {ours: [_plain_name(name) for name in theirs] for ours, theirs in form["columns"].items()}
        found = {ours: [places[name] for name in theirs if name in places] for ours, theirs in names.items()}
        if missing := [" or ".join(form["columns"][name]) for name in NEEDED if not found[name]]:
            raise InvalidStatementFile(f"line 1: columns are missing: {'; '.join(missing)}")
        columns = {name: header[known[0]] for name, known in found.items() if known}
        read = set(chain.from_iterable(found.values())) if has_names else range(len(header))
        if twice := [header[place] for place in read if plain.count(plain[place]) > 1]:
            raise InvalidStatementFile(f"line 1: columns are there twice: {'; '.join(sorted(twice))}")
        self.lacks_reference &= not found["reference"]
        self.unread |= {name: None for place, name in enumerate(header) if place not in read}
        for record in records if has_names else chain([first], records):
            if any(record.cells):
                texts = [*record.cells, *[""] * len(header)]
                values = {
                    name: next(filter(None, (_text(texts[place]) for place in found[name])), "")
                    for name in columns
                }
                yield Row(record.number, values, columns, form)

    def _events(self, path: Path, encoding: str) -> Iterator[Row]:
        """The webhooks of a file that has one in each line."""
        form = self.forms["webhooks"]
        columns = {name: paths[0] for name, paths in form["columns"].items()}
        with path.open(encoding=encoding, errors="replace") as text:
            for line, event in enumerate(iter(lambda: text.readline(MAX_LINE), ""), 1):
                if not event.strip():
                    continue
                try:
                    body = _json(event)
                    if body.keys() == {"payload"}:  # 2C2P signs it, but nothing is credited by it
                        body = _json(base64.urlsafe_b64decode(body["payload"].split(".")[1] + "=="))
                    values = {name: _value(body, paths) for name, paths in form["columns"].items()}
                    self.lacks_reference &= not values["reference"]
                except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
                    reason = f"it is no webhook as a JSON object of at most {MAX_LINE} characters"
                    raise InvalidStatementFile(f"line {line}: {reason}") from None
                yield Row(line, values, columns, form)


def _value(body: Any, paths: list[str]) -> str:
    """The text at the first path that leads to one, else empty."""
    for path in paths:
        found = reduce(lambda at, key: at.get(key) if isinstance(at, dict) else None, path.split("."), body)
        if isinstance(found, str | int):
            return _text(str(found))
    return ""


def _text(cell: str) -> str:
    """What a person sees, cut."""
    return _CONTROLS.sub("", cells.plain(unescape_cell(cell)))[:MAX_TEXT].encode(errors="replace").decode()


def _plain_name(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def _satang(text: str, unit: str) -> int:
    """Rounded half up: some reports have five decimals."""
    if cells.has_decimal_comma(text):
        text = text.replace(".", "").replace(",", ".")
    if not _AMOUNT.fullmatch(text):
        raise ValueError(text)
    number = Decimal(text.replace(",", "")).scaleb(2 if unit == "baht" else 0)
    if abs(satang := int(number.quantize(Decimal(1), ROUND_HALF_UP))) >= MAX_SATANG:
        raise ValueError(text)
    return satang


def _instant(text: str, zone: str) -> datetime:
    if text.isdecimal() and len(text) == 10:  # not a date such as 20261001
        return datetime.fromtimestamp(int(text), UTC)
    for pattern, iso in _TIMES.items():
        text = re.sub(pattern, iso, text, flags=re.ASCII)
    return dates.instant(text if _ZONE.search(text[16:]) else text + zone)
