"""The transfers of Opn Payments (Omise) to our bank account, and the ledger entries that they pay out.

Opn does not list what a transfer pays out. Its help page "How to calculate the transferred amount" says how
to find it: by the entries that became transferable between the creation of the transfer before and that of
this one. That holds if each transfer takes the whole balance, as a schedule of 100 % does.

The ledger is read in slices, which the caller keeps: each reading continues where the one before ended.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from banks import omise_objects, paging
from banks.base import (
    AcquirerTransfer,
    AcquirerTransferState,
    InquiryFailed,
    LedgerCopy,
    LedgerEntry,
    SettledItem,
)
from banks.http_client import CallFailed, NoResponse
from banks.paging import Get, Json, TooManyRows
from core import clock, money

# The limits of one reading. The next one continues after the last complete slice of the ledger: with 5,000
# payments a day, a slice is 30 pages. After one with fewer entries than SMALL_SLICE comes one twice as long.
MAX_PAGES, SECONDS, SLICE, SMALL_SLICE = 400, 60.0, timedelta(hours=6), 1_000
OVERLAP = timedelta(hours=1)  # an entry appears in the list a little later than its own time says
# Opn holds money for 7 days, unless another time was agreed. Entries that it holds longer than this are not
# found, so the items of their transfer do not add up.
MAX_HOLD = timedelta(days=31)
# A charge is older than its entry by the time of 3-D Secure, at most 30 minutes.
CHARGE_AGE = timedelta(hours=1)
# The one entry of a charge that succeeded. Its amount is what remains after fee and VAT.
CAPTURED = "charge.captured.net"
# After these failures Opn tries a transfer again on the next business day, unless it should `fail_fast`.
RETRIED_FAILURES = {"insufficient_balance", "transfers_suspended"}


def read(get: Get, since: datetime, until: datetime, ledger: LedgerCopy) -> list[AcquirerTransfer]:
    """The transfers that were created from `since` on and before `until`. Raises InquiryFailed."""
    pages = paging.pages(MAX_PAGES, SECONDS)
    try:
        return _read(get, since, until, ledger, pages)
    except CallFailed as failure:
        raise InquiryFailed("a list of the acquirer is incomplete", cause=failure.cause) from None
    except TooManyRows:
        raise InquiryFailed("the lists of the acquirer are too long or too slow") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InquiryFailed(f"an object of the acquirer is malformed: {error!r}") from None


def _read(
    get: Get, since: datetime, until: datetime, ledger: LedgerCopy, pages: Iterator[int]
) -> list[AcquirerTransfer]:
    rows = paging.read_all(get, "/transfers", _period(since, until), pages).values()
    found = [each for each in map(_parse_transfer, rows) if since <= each.created_at < until]
    found.sort(key=lambda each: each.created_at)
    paying = [each for each in found if each.state != "failed"]
    if not paying:
        return found
    previous = _find_previous(get, since, pages)
    _read_ledger(get, previous, paying[-1].created_at, ledger, pages)
    items = _items_by_transfer(previous, paying, ledger)
    return [replace(each, items=tuple(items[each.id])) for each in found]


def _find_previous(get: Get, since: datetime, pages: Iterator[int]) -> AcquirerTransfer | None:
    """The last transfer before `since` that did not fail."""
    params = {"to": clock.iso(since), "order": "reverse_chronological"}
    for row in paging.rows_of_pages(get, "/transfers", params, pages):
        transfer = _parse_transfer(row)
        if transfer.state != "failed" and transfer.created_at < since:
            return transfer
    return None


def _read_ledger(
    get: Get, previous: AcquirerTransfer | None, ends_at: datetime, ledger: LedgerCopy, pages: Iterator[int]
) -> None:
    """Copy what is new in the ledger. The first reading begins before the transfer before."""
    if ledger.read_until is not None:
        starts_at = ledger.read_until - OVERLAP
    elif previous is not None:
        starts_at = previous.created_at - MAX_HOLD
    else:
        rows = paging.rows_of_pages(get, "/transactions", {"order": "chronological"}, pages)
        starts_at = next((_parse_time(row["created_at"]) for row in rows), ends_at)
    span = SLICE
    while (ledger.read_until or starts_at) < ends_at:
        end = min(starts_at + span, ends_at)
        entries = _read_slice(get, starts_at, end, pages)
        ledger.add(entries, end)
        starts_at, span = end, span * 2 if len(entries) < SMALL_SLICE else SLICE


def _read_slice(get: Get, starts_at: datetime, ends_at: datetime, pages: Iterator[int]) -> list[LedgerEntry]:
    entries = paging.read_all(get, "/transactions", _period(starts_at, ends_at), pages).values()
    for entry in entries:
        entry["origin"] = entry["origin"] or entry["id"]
    objects = _origins(get, entries, _period(starts_at - CHARGE_AGE, ends_at), pages)
    return [
        LedgerEntry(entry["id"], _parse_time(entry["transferable_at"]), _parse_item(entry, objects))
        for entry in entries
    ]


def _items_by_transfer(
    previous: AcquirerTransfer | None, paying: Sequence[AcquirerTransfer], ledger: LedgerCopy
) -> dict[str, list[SettledItem]]:
    """The items by transfer: what became transferable since the transfer before."""
    own_debits = {each.id for each in (previous, *paying) if each}
    ends, items = [each.created_at for each in paying], defaultdict[str, list[SettledItem]](list)
    for entry in ledger.entries(previous.created_at if previous else None, ends[-1]):
        if entry.item.reference not in own_debits:
            items[paying[bisect_left(ends, entry.transferable_at)].id].append(entry.item)
    return items


def _origins(get: Get, entries: Iterable[Json], period: Json, pages: Iterator[int]) -> dict[str, Json]:
    """The charges and refunds of the entries, by their id. Raises NoResponse if one is missing.

    A charge that was captured long after it was made is not in the list of the period.
    """
    charges = {entry["origin"] for entry in entries if entry["key"] == CAPTURED}
    refunds = {entry["origin"] for entry in entries if entry["origin"].startswith("rfnd_")}
    objects = paging.read_all(get, "/charges", period, pages) if charges else {}
    for charge_id, _ in zip(sorted(charges - objects.keys()), pages, strict=False):
        objects[charge_id] = get(f"/charges/{charge_id}", {}).data
    objects |= paging.read_all(get, "/refunds", period, pages) if refunds else {}
    if any(objects.get(each, {}).get("id") != each for each in charges | refunds):
        raise NoResponse()
    return objects


def _parse_item(entry: Json, objects: dict[str, Json]) -> SettledItem:
    """An entry of a charge or a refund, or an adjustment, such as a dispute or a fee that is given back."""
    net = _amount(entry, "amount") * {"credit": 1, "debit": -1}[entry["direction"]]
    if str(entry["currency"]).upper() != money.CURRENCY:
        raise ValueError("an entry has another currency")
    if not isinstance(entry["key"], str):
        raise ValueError("an entry has no key")
    reference = entry["origin"]
    origin = objects.get(reference, {})
    order_id = omise_objects.order_id_of(origin)
    if entry["key"] == CAPTURED:
        fee, fee_vat = omise_objects.parse_fees(origin)
        return SettledItem("charge", reference, order_id, _amount(origin, "amount"), fee, fee_vat, net)
    if reference.startswith("rfnd_") and net < 0:
        # Opn keeps the fee of a refunded charge. An entry of another amount has an unknown part.
        amount = -_amount(origin, "amount")
        fees = 0 if net == amount else None
        return SettledItem("refund", reference, order_id, amount, fees, fees, net)
    return SettledItem("adjustment", reference, order_id, net, 0, 0, net, entry["key"])


def _parse_transfer(row: Json) -> AcquirerTransfer:
    return AcquirerTransfer(
        id=row["id"],
        amount=_amount(row, "amount"),
        fee=_amount(row, "fee"),
        fee_vat=_amount(row, "fee_vat"),
        net=_amount(row, "net"),
        state=_state(row),
        created_at=_parse_time(row["created_at"]),
        sent_at=_parse_time(row["sent_at"]) if row.get("sent_at") else None,
        paid_at=_parse_time(row["paid_at"]) if row.get("paid_at") else None,
        items=(),
    )


def _state(row: Json) -> AcquirerTransferState:
    failure = row.get("failure_code")
    if row.get("deleted") is True:
        return "failed"
    if failure and (row.get("fail_fast") is True or failure not in RETRIED_FAILURES):
        return "failed"
    if row["paid"] is True:
        return "paid"
    return "sent" if row["sent"] is True else "pending"


def _amount(row: Json, name: str) -> int:
    if type(row[name]) is not int or row[name] < 0:
        raise ValueError(f"{name} is malformed")
    return int(row[name])


def _parse_time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError("the time has no offset")
    return at.astimezone(UTC)


def _period(starts_at: datetime | None, ends_at: datetime) -> Json:
    return ({"from": clock.iso(starts_at)} if starts_at else {}) | {"to": clock.iso(ends_at)}
