"""Find payments by what the merchant, the payer or the bank knows.

`SELECTIVE` parameters have an index each, and few payments match one. The others look at the newest payments
of the period or after the cursor, `SEARCHED` at most, so that no search reads a whole history.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import F, Func, TextField, Value

from core import ids
from core.database import merging
from core.http import paging
from core.http.paging import Cursor
from merchants.models import Merchant
from payments.models import PAYMENTS, Payment, PaymentQuerySet

SEARCHED = 10_000
SELECTIVE = ("reference", "qr_code_id", "bank_reference", "settlement_id", "payment_link_id")
SCANNED = ("amount", "qr_code_id__isnull")


@dataclass(frozen=True, slots=True)
class Search:
    """The payments that match, the cursor of the query, and what the response says about the search."""

    payments: PaymentQuerySet
    cursor: Cursor | None
    more: dict[str, str] = field(default_factory=dict)
    kind_columns: Sequence[str] = ()  # see `core.database.merging`


def is_needed(query: dict[str, Any]) -> bool:
    """Whether the query has more than the counted list of payments can filter by."""
    return any(name in query for name in (*SELECTIVE, *SCANNED, "hold", "metadata"))


def find(
    merchant: Merchant, query: dict[str, Any], now: datetime, pk_of: Callable[[str], str] = str
) -> Search:
    """Raises InvalidParameters if the cursor is unknown. `pk_of`: see `paging.find_cursor`.

    If older payments were not searched, `more` has the id of the last one that was, as `searched_to`. As a
    cursor it continues the search, also in a list with other ids.
    """
    mine = Payment.objects.of(merchant)
    cursor = paging.find_cursor(mine, query, pk_of)
    found, more = paging.created_between(mine, query), dict[str, str]()
    kinds: Sequence[str] = ()
    if not any(name in query for name in SELECTIVE):
        kinds = PAYMENTS.kind_columns
        found, more = _newest(merging.named(found, kinds), cursor)
    if "qr_code_id" in query:
        found = found.filter(pk=ids.of_payment(query["qr_code_id"]))  # whose index finds it
    if "reference" in query:
        found = found.of_reference(query["reference"])
    found = found.filter(**{name: query[name] for name in (*SELECTIVE, *SCANNED) if name in query})
    if "hold" in query:
        found = found.filter(hold__isnull=query["hold"] == "false")
    for number, (key, value) in enumerate(query.get("metadata", {}).items()):
        stored = Func(F("metadata"), Value(key), function="json_extract_path_text", output_field=TextField())
        found = found.alias(**{f"metadata{number}": stored}).filter(**{f"metadata{number}": value})
    found = found.with_status(query["status"], now) if "status" in query else found
    return Search(found, cursor, more, kinds)


def _newest(within: PaymentQuerySet, cursor: Cursor | None) -> tuple[PaymentQuerySet, dict[str, str]]:
    """The first `SEARCHED` rows in the direction of the query, and what the response says about it."""
    listed = within.order_by(*paging.NEWEST_FIRST) if cursor is None else cursor.restrict(within)
    ends = merging.keys(listed, PAYMENTS.kind_columns, SEARCHED - 1, SEARCHED + 1)
    if len(ends) < 2:
        return listed, {}
    (_, searched_to), (created_at, beyond) = ends
    is_older = cursor is None or not cursor.is_before
    return Cursor(created_at, beyond, is_before=is_older).restrict(listed), {"searched_to": searched_to}
