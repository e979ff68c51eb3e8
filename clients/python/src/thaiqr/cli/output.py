"""Output for people (tables, colour where the terminal has it) or for programs (JSON on standard output)."""

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from thaiqr.cli import amounts
from thaiqr.decoding import Model
from thaiqr.models import Event
from thaiqr.paging import Pages

COLOURS = {
    "succeeded": "green",
    "completed": "green",
    "arrived": "green",
    "active": "green",
    "healthy": "green",
    "pending": "yellow",
    "processing": "yellow",
    "paused": "yellow",
    "failing": "yellow",
    "expected": "yellow",
    "failed": "red",
    "expired": "red",
    "canceled": "red",
    "disabled": "red",
    "late": "red",
    "differs": "red",
    "refunded": "cyan",
}
SATANG = {
    "amount_received", "amount_refunded", "amount_min", "amount_max", "gross", "fee", "fee_vat", "net",
}  # fmt: skip
HIDDEN = {"raw", "amount", "currency", "updated_at"}
"""Fields of an object that say no more than others."""
# The ids of a table fit. A narrower terminal breaks the line itself, and one may name no width (`COLUMNS=0`).
LEAST_WIDTH = 80
Columns = Mapping[str, str]
"""The heading of each field of an object, in order."""


def show_any_character() -> None:
    """Print escapes for characters that the output cannot show: no command may fail after its request."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


class Output:
    """Where a command writes. `json`: objects as JSON on standard output, all else on standard error."""

    def __init__(self, json: bool = False) -> None:
        self.json = json
        self.console = Console(highlight=False, soft_wrap=False)
        self.errors = Console(stderr=True, highlight=False, soft_wrap=True)
        for console in (self.console, self.errors):
            console.width = max(console.width, LEAST_WIDTH)

    def say(self, text: str) -> None:
        """Tell people something. Programs do not see it."""
        if not self.json:
            self.console.print(Text(text), soft_wrap=True)

    def note(self, text: str) -> None:
        """Tell something beside the result, on standard error."""
        self.errors.print(Text(text), style="yellow")

    def fail(self, text: str) -> None:
        """Tell why the command ends, on standard error."""
        self.errors.print(Text(text), style=None if self.json else "red")

    def data(self, value: Any, indent: int | None = None) -> None:
        """Print JSON, by default in one line, which is JSON in every encoding."""
        is_unicode = (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")
        print(json.dumps(value, ensure_ascii=not is_unicode, default=str, indent=indent), flush=True)  # noqa: T201

    def show(self, item: Model, fields: Sequence[str] = ()) -> None:
        """One object: all of it as JSON, or fields for people, by default all. Unset ones are left out."""
        if self.json:
            self.data(item.raw)
            return
        fields = fields or [each.name for each in dataclasses.fields(item) if each.name not in HIDDEN]
        width = max(len(name) for name in fields)
        for name in fields:
            value = getattr(item, name)
            if value not in (None, "", (), 0, False):
                text = Text.assemble((f"{name:<{width}}  ", "dim"), _in_baht(name, value) or shown(value))
                self.console.print(text, soft_wrap=True)

    def deleted(self, ids: Mapping[str, Any]) -> None:
        """Tell what is gone."""
        self.data({**ids, "deleted": True}) if self.json else self.say(
            " ".join(["Deleted", *ids.values()]) + "."
        )

    def listing(self, pages: Pages[Any], columns: Columns, limit: int) -> None:
        """The first objects of a list, with the total."""
        items: list[Any] = []
        total: int | None = None
        for page in pages.pages():
            items += page.items
            total = page.total if total is None else total
            if len(items) >= limit:
                break
        self.table(items[:limit], columns, total=total)

    def event(self, event: Event, text: str) -> None:
        """One event of a feed, in a line."""
        if self.json:
            self.data(event.raw)
            return
        kind = event.event
        line = Text.assemble((local(event.timestamp), "dim"), "  ", (f"{kind:<26}", _colour(kind)), " ", text)
        self.console.print(line, soft_wrap=True)

    def table(self, items: Iterable[Model], columns: Columns, *, total: int | None = None) -> None:
        """Objects as a table, or each as a line of JSON."""
        if self.json:
            for item in items:
                self.data(item.raw)
            return
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for name, heading in columns.items():
            is_amount = name.endswith("_display")
            is_whole = is_amount or name.endswith("_id") or name == "status"
            justify: Literal["left", "right"] = "right" if is_amount else "left"
            table.add_column(heading, justify=justify, overflow="fold", no_wrap=is_whole)
        for item in items:
            table.add_row(*(_cell(getattr(item, name)) for name in columns))
        if table.row_count:
            self.console.print(table)
        rest = "" if total is None or total <= table.row_count else f" of {total}"
        self.console.print(f"{table.row_count}{rest}" if table.row_count else "Nothing found.", style="dim")


def columns(names: str) -> Columns:
    """The columns of a table, with their headings."""
    return {name: "ID" if name.endswith("_id") else _heading(name) for name in names.split()}


def _heading(name: str) -> str:
    return name.removesuffix("_display").removesuffix("_at").replace("_", " ").capitalize()


def shown(value: Any) -> Text:
    """A value for people: local times, dashes for nothing, colours for states."""
    if isinstance(value, datetime):
        return Text(local(value))
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, tuple):
        return Text(", ".join(str(each) for each in value))
    if isinstance(value, Mapping | Model):
        plain = value.raw if isinstance(value, Model) else value
        return Text(json.dumps(dict(plain), ensure_ascii=False))
    text = str(value)
    return Text(text, style=COLOURS.get(text, ""))


def _cell(value: Any) -> Text:
    """A value in a table, where a line has 80 columns."""
    return Text(f"{value.astimezone():%m-%d %H:%M}") if isinstance(value, datetime) else shown(value)


def _in_baht(name: str, value: Any) -> str:
    """Satang as baht, for amounts that the API has as integers only."""
    return amounts.display(value) if name in SATANG and isinstance(value, int) else ""


def local(instant: datetime) -> str:
    """A time in the zone of this machine."""
    return instant.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _colour(event: str) -> str:
    return COLOURS.get(event.rpartition(".")[2], "")
