"""What pages and prints show of a month."""

from datetime import datetime
from typing import Any

from django.db import OperationalError, connection
from django.utils.translation import gettext as _
from psycopg.errors import QueryCanceled

from core.database.sessions import limit_statements
from operations.audit.daily_close.closing import NotClosable
from operations.audit.month_close import closing
from operations.audit.month_close.categories import Category

# A month of a million entries takes longer: the command reads it.
STATEMENT_SECONDS = 5


def due(now: datetime) -> dict[str, Any]:
    """The month that is closed next as it is now, and why it cannot be closed yet."""
    month, refusal = closing.due(now), ""
    try:
        with limit_statements(connection, STATEMENT_SECONDS):
            books = closing.read(month, now)
            closing.check(month, now)
    except NotClosable as reason:
        refusal = str(reason)
    except OperationalError as error:
        if not isinstance(error.__cause__, QueryCanceled):
            raise
        text = _("The month is too large for this page. The command close_month shows it.")
        return {"month": f"{month:%Y-%m}", "refusal": text}
    refusal = refusal or (books.refusal if books.open else "")
    return {"month": f"{month:%Y-%m}", "refusal": refusal, "books": books, "shown": shown(books.as_json())}


def shown(body: dict[str, Any]) -> dict[str, Any]:
    names = dict(Category.choices)
    lines = [each | {"category": names.get(each["category"], _("Open"))} for each in body["statement_lines"]]
    return {"tables": tables(body), "lines": lines, "corrections": body["corrections"]}


def tables(body: dict[str, Any]) -> list[tuple[str, list[tuple[str, int]]]]:
    """The lines of each bank and acquirer: opening balance, each category with money, closing balance."""
    names = {"": _("Money without an owner"), "all": _("All together")}
    return [
        (
            names.get(party["party"], party["party"]),
            [
                (_("Opening balance"), party["opening"]),
                *((str(each.label), party[each]) for each in Category if party[each]),
                (_("Closing balance"), party["closing"]),
            ],
        )
        for party in (*body["parties"], body["total"])
    ]
