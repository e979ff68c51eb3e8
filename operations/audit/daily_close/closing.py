"""Close a day: write down its totals and the heads of ledger and audit trail, signed and chained.

Each close contains the hash of the one before. So the newest one, kept outside of the database, proves all.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from typing import Any, TypeVar

import orjson
from django.conf import settings
from django.db import IntegrityError

from audit_trail.models import ChainLink
from core import clock
from operations.audit import runner
from operations.audit.daily_close import proofs, sealing, signing, totals
from operations.models import DailyClose, SignedClose

VERSION = 1
C = TypeVar("C", bound=SignedClose)
# A commit that is in progress at midnight may still add entries to the day before.
CLOSABLE_AFTER = timedelta(minutes=10)


class NotClosable(Exception):
    """The day has not ended, was closed before, or does not follow the newest close."""


def last_closable_day(now: datetime) -> date:
    return (now - CLOSABLE_AFTER).astimezone(clock.BANGKOK).date() - timedelta(days=1)


def lacks_key(now: datetime) -> bool:
    """Whether days stay open because no process has a key. The key may be that of another process only."""
    due = last_closable_day(now) - timedelta(days=1)
    return not settings.CLOSE_SIGNING_KEY and not DailyClose.objects.filter(day__gte=due).exists()


def close_due(clock: Callable[[], datetime], *, first: date | None = None) -> Iterator[DailyClose]:
    """Close each day that has ended since the newest close. Raises NotClosable, signing.NoSigningKey."""
    now, newest = clock(), DailyClose.objects.order_by("number").last()
    day = first or (newest.day + timedelta(days=1) if newest else last_closable_day(now))
    while day <= last_closable_day(now):
        yield close(day, now=clock())
        day += timedelta(days=1)


def close(day: date, *, now: datetime) -> DailyClose:
    """Close a day that has ended, from one snapshot. Raises NotClosable, signing.NoSigningKey."""
    if day > last_closable_day(now):
        raise NotClosable(f"{day} has not ended, or ended less than ten minutes ago.")
    signing.public_key()  # before the work
    try:
        with runner.snapshot(writes=True):
            return _close(day, now)
    except IntegrityError:
        raise NotClosable(f"{day} was closed by somebody else at the same time.") from None


def _close(day: date, now: datetime) -> DailyClose:
    previous = DailyClose.objects.order_by("number").last()
    if previous is not None and day != previous.day + timedelta(days=1):
        raise NotClosable(f"The newest close is of {previous.day}, so {day} cannot be next.")
    trees = sealing.write_payments(day, previous.number + 1 if previous else 1)
    body = orjson.dumps(_content(day, previous, now) | {"evidence": sealing.roots(trees)}).decode()
    made = signed(DailyClose, body, previous, day=day)
    made.save(force_insert=True)
    sealing.seal(made, trees)
    proofs.write(made)
    return made


def signed(model: type[C], body: str, previous: SignedClose | None, **fields: Any) -> C:
    """A close that follows `previous`, not stored yet. Raises signing.NoSigningKey."""
    return model(
        number=previous.number + 1 if previous else 1,
        body=body,
        hash=hash_of(body),
        previous_hash=previous.hash if previous else "",
        signature=signing.sign(body),
        public_key=signing.public_key(),
        **fields,
    )


def hash_of(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _content(day: date, previous: DailyClose | None, now: datetime) -> dict[str, Any]:
    start, end = totals.bounds(day)
    opening = closing_balances(previous) if previous else totals.opening_balances(start)
    accounts = totals.of_day(day, opening)
    return chained(previous, now) | {
        "day": day.isoformat(),
        "starts_at": clock.iso(start),
        "ends_at": clock.iso(end),
        "currency": "THB",
        "accounts": [each.as_json() for each in accounts],
        "merchants": totals.by_merchant(accounts),
        "banks": totals.by_bank(accounts),
        "ledger": {"entries": sum(each.entries for each in accounts), "hash": totals.entries_hash(day)},
    }


def chained(previous: SignedClose | None, now: datetime) -> dict[str, Any]:
    """What each close says of itself, of the audit trail, and of the close before."""
    return {
        "version": VERSION,
        "number": previous.number + 1 if previous else 1,
        "closed_at": clock.iso(now),
        "audit_trail": _named(ChainLink.objects.order_by("-number").first()),
        "previous": _named(previous),
    }


def _named(row: ChainLink | SignedClose | None) -> dict[str, Any] | None:
    return {"number": row.number, "hash": row.hash} if row else None


def closing_balances(close: DailyClose) -> dict[str, int]:
    return {each["account"]: each["closing"] for each in orjson.loads(close.body)["accounts"]}


def signers() -> list[str]:
    """Which keys signed the closes, for people: the fingerprint, and how many."""
    counts = Counter(DailyClose.objects.order_by("number").values_list("public_key", flat=True))
    return [f"{signing.fingerprint(key)} ({count})" for key, count in counts.items()]


def findings() -> Iterator[tuple[str, str]]:
    """What is wrong with the closes, as (id, text). Compares each one with the ledger of today."""
    previous: DailyClose | None = None
    for each in DailyClose.objects.order_by("number").iterator(chunk_size=10):
        name = f"close of {each.day}"
        found = (*problems(each, previous), *_differences(each, previous))
        found += (*sealing.problems(each), *proofs.problems(each))
        yield from ((name, text) for text in found)
        previous = each


def problems(close: SignedClose, previous: SignedClose | None) -> Iterator[str]:
    """What is wrong with a signature, or with the chain of the closes."""
    is_signed = signing.is_valid(close.body, close.signature, close.public_key)
    if close.hash != hash_of(close.body) or not is_signed:
        yield "was changed"
        return
    if close.public_key not in signing.known_keys():
        # Somebody who can rewrite a close can sign it too, with another key.
        yield f"is signed with the key {signing.fingerprint(close.public_key)}, which is not configured"
    body = orjson.loads(close.body)
    expected = (previous.number + 1, previous.hash) if previous else (1, "")
    if (close.number, close.previous_hash) != expected or body["previous"] != _named(previous):
        yield "does not follow the close before it"
    noted = body["audit_trail"]
    if noted and not ChainLink.objects.filter(number=noted["number"], hash=noted["hash"]).exists():
        yield f"the audit trail does not contain its link {noted['number']}"


def _differences(close: DailyClose, previous: DailyClose | None) -> Iterator[str]:
    body = orjson.loads(close.body)
    opening = closing_balances(previous) if previous else totals.opening_balances(totals.bounds(close.day)[0])
    if [each.as_json() for each in totals.of_day(close.day, opening)] != body["accounts"]:
        yield "the ledger has other totals"
    elif totals.entries_hash(close.day) != body["ledger"]["hash"]:
        yield "the ledger has other entries"
