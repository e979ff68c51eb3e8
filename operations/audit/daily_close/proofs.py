"""What a day says in public of a merchant that chose it: how soon and completely payments were reported.

The close signs it. Figures are of the payments by code that were credited on the day without a decision of a
person, and of what was known GRACE after its end. A day of few payments has no figures.
"""

from bisect import bisect
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from django.db.models import Q

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from core import clock
from core.database import rows
from merchants.models import Merchant
from operations.audit.daily_close import signing
from operations.audit.daily_close.totals import bounds
from operations.models import DailyClose, ProofDay

# A day is closed ten minutes after its end (`closing`): an attempt of these five minutes is stored by then.
GRACE = timedelta(minutes=5)
FEWEST = 20
"""Payments of a day. With fewer, a figure could be that of a payment that somebody knows."""
COUNTS = (0, FEWEST, 50, *(digit * 10**power for power in range(2, 10) for digit in (1, 2, 5)))
SPANS = (1, 2, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400)
"""Seconds within which payments were found. Longer times are days."""
FACTS = Path(__file__).with_name("proofs.sql").read_text()


class Facts(NamedTuple):
    """Of one merchant and day, exactly. Lost is a callback of the bank that did not come."""

    payments: int
    posted: int
    not_posted: int
    p95: timedelta | None
    lost_by_inquiry: int
    lost_by_statement: int
    half_found: timedelta | None
    all_found: timedelta | None
    audited_at: datetime | None
    audit_differences: int | None
    drilled_at: datetime | None
    drill_reached: datetime | None


def count(merchant_id: str, day: date, closed: dict[str, Any], sql: str = FACTS) -> Facts:
    """closed: what the close of the day says, of which the newest link bounds the drills."""
    start, end = bounds(day)
    values = {"merchant": merchant_id, "start": start, "end": end, "until": end + GRACE}
    values |= {"since": start - GRACE}  # the clock of a worker may be behind
    values |= {"closed_at": closed["closed_at"], "link": (closed["audit_trail"] or {"number": 0})["number"]}
    return Facts(*rows.run(sql, values).fetchone())


def document(merchant_id: str, close: DailyClose, closed: dict[str, Any], facts: Facts) -> dict[str, Any]:
    """What everybody may read. `kind` keeps it apart from a close, which the same key signs."""
    place = bisect(COUNTS, facts.payments)
    # The clock of a bank may be ahead of ours.
    p95 = max(0, -(-(facts.p95 or timedelta()) // timedelta(milliseconds=100))) * 100
    callbacks = {
        "lost": facts.lost_by_inquiry + facts.lost_by_statement,
        "found_by_inquiry": facts.lost_by_inquiry,
        "found_by_statement": facts.lost_by_statement,
        "half_found_within_s": _span(facts.half_found),
        "all_found_within_s": _span(facts.all_found),
    }
    audit = {"ended_at": clock.iso_or_none(facts.audited_at), "differences": facts.audit_differences or 0}
    reached, drilled = clock.iso_or_none(facts.drill_reached), clock.iso_or_none(facts.drilled_at)
    head = {"kind": "proof", "version": 1, "merchant_id": merchant_id, "day": close.day.isoformat()}
    return head | {
        "payments": {"from": COUNTS[place - 1], "to": COUNTS[place] - 1},
        "webhook": {"p95_ms": p95, "not_posted": facts.not_posted} if facts.posted >= FEWEST else None,
        "callbacks": callbacks if facts.payments >= FEWEST else None,
        "close": {"number": close.number, "hash": close.hash, "closed_at": closed["closed_at"]},
        "audit": audit if facts.audited_at else None,
        "restore_drill": {"recorded_at": drilled, "reached": reached} if drilled else None,
    }


def _span(span: timedelta | None) -> int | None:
    if span is None:
        return None
    days = -(-span // timedelta(days=1)) * 86_400
    return next((each for each in SPANS if span <= timedelta(seconds=each)), days)


def write(close: DailyClose) -> None:
    """Sign the day for each merchant that publishes it, in the transaction of the close.

    A choice is for the days from that of the choice on, however late they are closed. Until the day of its
    import another operator reported the payments of a merchant.
    """
    chosen = Merchant.objects.filter(shows_proof=True, suspended_at=None, moved_at=None).order_by("pk")
    start, end = bounds(close.day)
    later = Q(act=Act.PROOF_SWITCHED, created_at__gte=end)
    later |= Q(act=Act.MERCHANT_IMPORTED, created_at__gte=start)
    closed = orjson.loads(close.body)
    left_out = AuditRecord.objects.filter(later).values("merchant_id")
    for id in chosen.exclude(pk__in=left_out).values_list("pk", flat=True):
        body = orjson.dumps(document(id, close, closed, count(id, close.day, closed))).decode()
        made = ProofDay(merchant_id=id, day=close.day, close=close, body=body, signature=signing.sign(body))
        made.save(force_insert=True)


def problems(close: DailyClose) -> Iterator[str]:
    for each in close.proofs.order_by("merchant_id").iterator(chunk_size=10):
        if not signing.is_valid(each.body, each.signature, close.public_key):
            yield f"the proof of {each.merchant_id} was changed"
