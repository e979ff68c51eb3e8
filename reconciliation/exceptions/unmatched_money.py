"""Money with an unknown reference that may be for a payment: the exceptions that name it as a candidate.

`candidates` decides, so the page of the exception and the payment agree. One look into an index tells first
whether there can be any.
"""

from core.database import rows
from merchants.models import OF_MERCHANT
from payments.models import Payment
from reconciliation.exceptions import candidates
from reconciliation.models import BankTransaction

# So many are compared as thoroughly as one alone.
MAX_COMPARED = 5
# Exceptions `e` of payment `p` of merchant `m`: of its amount, and not reported before its code was made.
_OF_AMOUNT = """
    p.status IN ('pending', 'expired') AND e.reason = 'unmatched' AND e.amount = p.amount
    AND e.opened_at >= p.created_at
"""
# Money of no payment belongs to the merchant that has its biller id now. One look for each of its banks.
IS_POSSIBLE = f"""EXISTS (
    SELECT FROM (VALUES {OF_MERCHANT}) AS own (bank, biller_id)
    JOIN reconciliation_reconciliationexception e ON e.bank = own.bank AND e.biller_id = own.biller_id
    WHERE own.biller_id <> '' AND {_OF_AMOUNT}
)"""
# Whether the reported reference is a part of that of code `c`, or has a third of it. Every similar one is so.
_IS_SIMILAR = f"""
    length(reported.text) >= {candidates.MIN_FRAGMENT_LENGTH} AND (
        strpos(c.reference1, reported.text) > 0
        OR strpos(reported.text, substr(c.reference1, 1, 7)) > 0
        OR strpos(reported.text, substr(c.reference1, 8, 7)) > 0
        OR strpos(reported.text, substr(c.reference1, 15)) > 0
    )
"""
# Similar references first. Of the others the oldest: if newer codes are nearer to that one, they are nearer
# to all later ones too. OFFSET 0 computes the text once, 5,000 of them in 18 ms.
_FIRST = f"""
    JOIN (
        SELECT e.id, e.opened_at, {_IS_SIMILAR} AS is_similar
        FROM payments_payment p JOIN qrcodes_qrcode c ON c.payment_id = p.id
        JOIN reconciliation_reconciliationexception e
            ON e.bank = c.bank AND (e.biller_id = c.biller_id OR %s AND NOT EXISTS (
                SELECT FROM merchants_merchant m
                WHERE e.biller_id <> '' AND (e.bank, e.biller_id) IN ({OF_MERCHANT})
            ))
        CROSS JOIN LATERAL (
            SELECT regexp_replace(upper(e.reference1), '[^0-9A-Z]', '', 'g') AS text
            OFFSET 0
        ) reported
        WHERE p.id = %s AND {_OF_AMOUNT}
        ORDER BY is_similar DESC, e.opened_at, e.id LIMIT {MAX_COMPARED}
    ) e ON e.id = t.id
    ORDER BY e.is_similar DESC, e.opened_at, e.id
"""  # noqa: S608


def find(payment: Payment, *, for_staff: bool = False) -> list[BankTransaction]:
    """Open money that arrived with an unknown reference and may be for the payment, the most likely first.

    for_staff: also money of no known merchant. A merchant sees only what came to its own biller id.
    """
    waiting = rows.find(BankTransaction, _FIRST, for_staff, payment.id)
    found = candidates.find(waiting)
    named = [
        (candidate.score, each)
        for each in waiting
        for candidate in found[each.id]
        if candidate.payment.id == payment.id and candidate.is_unpaid
    ]
    return [bank_transaction for _, bank_transaction in sorted(named, key=lambda each: -each[0])]
