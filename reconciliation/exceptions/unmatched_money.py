"""Money with an unknown reference that may be for a payment: the exceptions that name it as a candidate.

`candidates` decides, so the page of the exception and the payment agree. One look into an index tells first
whether there can be any.
"""

from core import rows
from payments.models import Payment
from reconciliation.exceptions import candidates
from reconciliation.models import BankTransaction

# So many are compared as thoroughly as one alone.
MAX_COMPARED = 5
# Exceptions `e` of payment `p` of merchant `m`: of its amount, and not reported before its code was made.
_OF_AMOUNT = f"""
    p.status IN ('pending', 'expired') AND e.reason = 'unmatched' AND e.amount = p.amount
    AND e.opened_at >= p.created_at - interval '{candidates.SEARCH_AFTER.total_seconds():.0f} seconds'
"""
IS_POSSIBLE = f"""EXISTS (
    SELECT FROM reconciliation_reconciliationexception e WHERE e.merchant_id = m.id AND {_OF_AMOUNT}
)"""
_FIRST = f"""
    JOIN reconciliation_reconciliationexception e ON e.id = t.id
    JOIN payments_payment p ON p.id = %s JOIN merchants_merchant m ON m.id = p.merchant_id
    WHERE (e.merchant_id = m.id OR %s AND e.merchant_id IS NULL AND e.bank = m.bank) AND {_OF_AMOUNT}
    ORDER BY e.opened_at, e.id LIMIT {MAX_COMPARED}
"""


def find(payment: Payment, *, for_staff: bool = False) -> list[BankTransaction]:
    """Open money that arrived with an unknown reference and may be for the payment, the most likely first.

    for_staff: also money of no known merchant. A merchant sees only what came to its own biller id.
    """
    waiting = rows.find(BankTransaction, _FIRST, payment.id, for_staff)
    found = candidates.find(waiting)
    named = [
        (candidate.score, movement)
        for movement in waiting
        for candidate in found[movement.id]
        if candidate.payment.id == payment.id and candidate.is_unpaid
    ]
    return [movement for _, movement in sorted(named, key=lambda each: -each[0])]
