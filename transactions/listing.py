"""A page of the history, newest first, and the total, by one statement (one snapshot)."""

from dataclasses import dataclass
from itertools import product

from core import rows
from transactions import counting
from transactions.counting import TransactionFilter
from transactions.models import Transaction, TransactionStatus, TransactionType

# Up to this offset, skipping entries of an index costs less than a search for the first row.
MAX_PLAIN_OFFSET = 1_000


@dataclass(frozen=True, slots=True)
class TransactionPage:
    """A page and the number of all rows that match."""

    transactions: list[Transaction]
    total: int


def page(criteria: TransactionFilter, *, limit: int, offset: int) -> TransactionPage:
    """Up to `limit` rows after the newest `offset`."""
    sql = _page_sql(criteria, is_near=offset <= MAX_PLAIN_OFFSET)
    found = rows.run(sql, {**criteria.values, "limit": limit, "offset": offset}).fetchall()
    # Each row has the total; an empty page is one row with the total only.
    listed = [rows.instance(Transaction, values) for _, *values in found if values[0] is not None]
    return TransactionPage(listed, found[0][0])


def _page_sql(criteria: TransactionFilter, *, is_near: bool) -> str:
    place, before, rest = "", "%(end)s", "%(offset)s::bigint"
    if not is_near:
        place = f"place AS ({counting.position_sql(criteria)}),"
        before, rest = "(SELECT before FROM place)", "(SELECT rest FROM place)"
    order = "ORDER BY created_at DESC, id DESC"
    # An index has the rows of each condition in order, so the first of each are enough.
    matching = " UNION ALL ".join(
        f"""(
            SELECT created_at, id FROM transactions_transaction
            WHERE {condition} AND created_at >= %(start)s AND created_at < {before}
            {order} LIMIT {rest} + %(limit)s
        )"""  # noqa: S608
        for condition in _conditions(criteria)
    )
    return f"""
        WITH {place}
        total AS (SELECT {counting.total_sql(criteria)} AS count),
        key AS (SELECT id FROM ({matching}) AS matching {order} LIMIT %(limit)s OFFSET {rest})
        SELECT total.count, {rows.columns(Transaction, "row")}
        FROM total LEFT JOIN (key JOIN transactions_transaction AS row USING (id)) ON true
        ORDER BY row.created_at DESC, row.id DESC
    """  # noqa: S608


def _conditions(criteria: TransactionFilter) -> list[str]:
    """One condition for each type and status that the filter allows, or one for all rows."""
    if criteria.type is None and criteria.status is None:
        return [criteria.condition]
    types = [] if criteria.type else [f"type = '{kind}'" for kind in TransactionType]
    statuses = [] if criteria.status else [f"status = '{status}'" for status in TransactionStatus]
    return [
        " AND ".join([criteria.condition, *others])
        for others in product(*(each for each in (types, statuses) if each))
    ]
