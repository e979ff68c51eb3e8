"""A page of the history, newest first, and how many rows there are, both by one statement: one snapshot."""

from dataclasses import dataclass
from itertools import product

from core import rows
from transactions import counting
from transactions.counting import Wanted
from transactions.models import Status, Transaction, Type

# Up to here, passing over entries of an index costs less than looking where the page begins.
NEAR = 1_000


@dataclass(frozen=True, slots=True)
class Listed:
    """A page and the number of all rows that match."""

    transactions: list[Transaction]
    total: int


def page(wanted: Wanted, *, limit: int, offset: int) -> Listed:
    """Up to `limit` rows after the newest `offset`."""
    sql = _page_sql(wanted, is_near=offset <= NEAR)
    found = rows.run(sql, {**wanted.values, "limit": limit, "offset": offset}).fetchall()
    # The total comes with each row, and with one of nothing where the page is empty.
    listed = [rows.instance(Transaction, values) for _, *values in found if values[0] is not None]
    return Listed(listed, found[0][0])


def _page_sql(wanted: Wanted, *, is_near: bool) -> str:
    place, before, rest = "", "%(end)s", "%(offset)s::bigint"
    if not is_near:
        place = f"place AS ({counting.place_sql(wanted)}),"
        before, rest = "(SELECT before FROM place)", "(SELECT rest FROM place)"
    order = "ORDER BY created_at DESC, id DESC"
    # An index has each condition's rows in order, of which the page can only be among the first.
    matching = " UNION ALL ".join(
        f"""(
            SELECT created_at, id FROM transactions_transaction
            WHERE {condition} AND created_at >= %(start)s AND created_at < {before}
            {order} LIMIT {rest} + %(limit)s
        )"""  # noqa: S608
        for condition in _conditions(wanted)
    )
    return f"""
        WITH {place}
        total AS ({counting.total_sql(wanted)}),
        key AS (SELECT id FROM ({matching}) AS matching {order} LIMIT %(limit)s OFFSET {rest})
        SELECT total.count, {rows.columns(Transaction, "row")}
        FROM total LEFT JOIN (key JOIN transactions_transaction AS row USING (id)) ON true
        ORDER BY row.created_at DESC, row.id DESC
    """  # noqa: S608


def _conditions(wanted: Wanted) -> list[str]:
    """Each type and status for itself where there is a filter."""
    if wanted.type is None and wanted.status is None:
        return [wanted.condition]
    types = [] if wanted.type else [f"type = '{kind}'" for kind in Type]
    statuses = [] if wanted.status else [f"status = '{status}'" for status in Status]
    return [
        " AND ".join([wanted.condition, *others])
        for others in product(*(each for each in (types, statuses) if each))
    ]
