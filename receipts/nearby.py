"""Which payments the money that waits may be meant for, and in words why. Nothing is decided here.

Two statements for any number of receipts: one finds the codes, the other reads them and their payments.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from core import money, rows
from payments.models import Payment, Status
from qrcodes.models import QrCode
from receipts import likeness
from receipts.models import Kind, Receipt
from receipts.sentences import span

SHOWN = 5
BEFORE, AFTER = timedelta(days=7), timedelta(minutes=10)
"""A code is looked for among those made so long before the money was paid; clocks differ a little."""
LOOKED_AT = 1000  # codes of a merchant, the newest before the money; a bound for the busiest
KEPT = 20

# Among a merchant's codes of those days: what nobody has paid over the same amount, and what shares a part of
# its reference with the one that the bank told.
FIND = """
SELECT asked.id, found.code_id FROM unnest(
    %(ids)s::text[], %(banks)s::text[], %(billers)s::text[], %(amounts)s::bigint[], %(paid)s::timestamptz[],
    %(starts)s::text[], %(middles)s::text[], %(ends)s::text[]
) AS asked (id, bank, biller, amount, paid_at, start_, middle_, end_)
JOIN merchants_merchant merchant ON merchant.bank = asked.bank AND merchant.biller_id = asked.biller
CROSS JOIN LATERAL (
    SELECT code.id AS code_id FROM (
        SELECT id, amount, status, created_at FROM payments_payment
        WHERE merchant_id = merchant.id AND qr_code_id IS NOT NULL
            AND created_at >= asked.paid_at - %(before)s AND created_at <= asked.paid_at + %(after)s
        ORDER BY created_at DESC, id DESC LIMIT %(looked_at)s
    ) recent JOIN qrcodes_qrcode code ON code.payment_id = recent.id
    CROSS JOIN LATERAL (
        SELECT coalesce(greatest(
            strpos(code.reference1, asked.start_),
            strpos(code.reference1, asked.middle_),
            strpos(code.reference1, asked.end_)
        ), 0) > 0 AS is_so
    ) alike
    WHERE alike.is_so OR recent.amount = asked.amount AND recent.status IN ('pending', 'expired')
    ORDER BY alike.is_so DESC, recent.created_at DESC LIMIT %(kept)s
) found
WHERE asked.biller <> ''
"""


@dataclass(frozen=True, slots=True)
class Near:
    """A payment that the money may be for. points: the more, the nearer; of no meaning beyond the order."""

    payment: Payment
    code: QrCode
    points: int
    words: str

    @property
    def is_unpaid(self) -> bool:
        return self.payment.status in (Status.PENDING, Status.EXPIRED)


def to(receipts: Sequence[Receipt]) -> dict[str, list[Near]]:
    """The nearest payments by the id of the receipt, the nearest first; credits only."""
    credits = [receipt for receipt in receipts if receipt.kind == Kind.CREDIT]
    found = _found(credits) if credits else {}
    meant = {receipt.id: likeness.spellings(receipt.reference1) for receipt in credits}
    codes = _codes(found, meant) if credits else []
    by_id, by_reference = {code.id: code for code in codes}, {code.reference1: code for code in codes}
    nearest: dict[str, list[Near]] = {}
    for receipt in credits:
        spelt = [by_reference[each] for each in meant[receipt.id] if each in by_reference]
        own = {code.id: code for code in [*spelt, *(by_id[each] for each in found.get(receipt.id, ()))]}
        judged = [near for code in own.values() if (near := judge(receipt, code)) is not None]
        nearest[receipt.id] = sorted(judged, key=lambda near: _order(near, receipt))[:SHOWN]
    return nearest


def judge(receipt: Receipt, code: QrCode) -> Near | None:
    """How near a payment is to the money; None if nothing but chance speaks for it."""
    payment = code.payment
    alike = likeness.compare(receipt.reference1, code.reference1)
    if code.merchant.bank != receipt.bank or (alike is None and receipt.amount != payment.amount):
        return None
    points, words = (alike.points, [alike.words]) if alike else (0, ["another reference"])
    if receipt.biller_id != code.biller_id:
        points, words = points - 10, [*words, "another biller id"]
    amount_points, amount_words = _amount(receipt.amount - payment.amount)
    time_points, time_words = _time(payment, receipt.paid_at)
    return Near(
        payment, code, points + amount_points + time_points, ", ".join([amount_words, time_words, *words])
    )


def _order(near: Near, receipt: Receipt) -> tuple[int, timedelta, str]:
    """Of many codes over the same amount the one that was made at about the time of the money comes first."""
    payment = near.payment
    return -near.points, abs(receipt.paid_at - payment.created_at), payment.id


def _amount(more: int) -> tuple[int, str]:
    if not more:
        return 30, "same amount"
    return 0, f"{money.display(abs(more))} too {'much' if more > 0 else 'little'}"


def _time(payment: Payment, paid_at: datetime) -> tuple[int, str]:
    passed = paid_at - payment.created_at
    if passed < timedelta(0):
        return 0, f"code made {span(-passed)} after the money"
    points = next((points for limit, points in _FRESH if passed <= limit), 0)
    return points, f"code made {span(passed)} before the money"


_FRESH = [(timedelta(minutes=15), 10), (timedelta(hours=1), 8), (timedelta(days=1), 5)]


def _found(receipts: Sequence[Receipt]) -> dict[str, list[str]]:
    """Ids of codes by the id of the receipt."""
    parts = [(*likeness.pieces(each.reference1), None, None, None)[:3] for each in receipts]
    starts, middles, ends = zip(*parts, strict=True)
    asked = {
        "ids": [each.id for each in receipts],
        "banks": [each.bank for each in receipts],
        "billers": [each.biller_id for each in receipts],
        "amounts": [each.amount for each in receipts],
        "paid": [each.paid_at for each in receipts],
        "starts": list(starts),
        "middles": list(middles),
        "ends": list(ends),
    }
    bounds = {"before": BEFORE, "after": AFTER, "looked_at": LOOKED_AT, "kept": KEPT}
    found = defaultdict(list)
    for receipt_id, code_id in rows.run(FIND, asked | bounds).fetchall():
        found[receipt_id].append(code_id)
    return found


def _codes(found: dict[str, list[str]], meant: dict[str, list[str]]) -> list[QrCode]:
    ids = [code_id for each in found.values() for code_id in each]
    references = [reference for each in meant.values() for reference in each]
    wanted = QrCode.objects.filter(Q(id__in=ids) | Q(reference1__in=references))
    return list(wanted.select_related("payment", "merchant"))
