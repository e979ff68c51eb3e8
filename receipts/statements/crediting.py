"""Payments whose callbacks were lost: the lines of a batch make them succeed together, by few statements.

Only what is plain is done here. Whatever else may be the matter, `receipts.services` knows.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from core import rows
from payments import services as payments
from payments.models import Payment
from payments.services import Paid
from receipts import crediting, joining, services
from receipts.judging import judge
from receipts.models import Kind, Outcome, Receipt
from receipts.statements.commits import by_index
from transactions import accounts

GIVEN = """
SELECT code.biller_id, code.reference1, code.payment_id
FROM qrcodes_qrcode AS code JOIN merchants_merchant AS merchant ON merchant.id = code.merchant_id
WHERE code.reference1 = ANY(%s) AND merchant.bank = %s
"""
# A join, or the planner may prefer to read all receipts of the bank.
NAMED = """
SELECT name FROM unnest(%s::text[]) AS name JOIN receipts_receipt AS debit
    ON debit.bank_transaction_id = name AND debit.bank = %s AND debit.kind = %s
"""
# Another report of money for the payment went back to the payer: whether this is that money is asked alone.
RETURNED = """
SELECT payment_id FROM receipts_receipt
WHERE payment_id = ANY(%s) AND resolution IN ('sending_back', 'sent_back')
"""
LOCK = "ORDER BY t.id FOR NO KEY UPDATE"
Pair = tuple[Receipt, Payment]


@by_index()
def apply(bank: str, receipts: Sequence[Receipt], now: datetime) -> set[str]:
    """Apply those by which a payment plainly succeeds; returns the ids of the others that wait.

    receipts: credits of references that we gave. Locks as in `services.apply`: turns, payments, receipts; of
    each kind in one order for everybody.
    """
    joining.hold([services.turn_of(receipt) for receipt in receipts])
    named = _payments(bank, receipts)
    found = _waiting(receipts)
    gone = _taken_back(bank, found)
    pairs = [(receipt, named[_what(receipt)]) for receipt in found if _what(receipt) in named]
    lines = Counter(payment.id for _, payment in pairs)
    returned = {payment_id for (payment_id,) in rows.run(RETURNED, [list(lines)]).fetchall()}
    plain = [
        (receipt, payment)
        for receipt, payment in pairs
        if lines[payment.id] == 1
        and payment.id not in returned
        and receipt.bank_transaction_id not in gone
        and _is_plain(receipt, payment)
    ]
    _succeed(bank, plain, now)
    return {receipt.id for receipt in found} - {receipt.id for receipt, _ in plain}


def _payments(bank: str, receipts: Sequence[Receipt]) -> dict[tuple[str, str], Payment]:
    """By biller and reference, under their locks."""
    codes = rows.run(GIVEN, [[receipt.reference1 for receipt in receipts], bank]).fetchall()
    wanted = [payment_id for *_, payment_id in codes]
    locked = {payment.id: payment for payment in rows.find(Payment, f"WHERE t.id = ANY(%s) {LOCK}", wanted)}
    return {(biller_id, reference1): locked[payment_id] for biller_id, reference1, payment_id in codes}


def _waiting(receipts: Sequence[Receipt]) -> list[Receipt]:
    """Under their locks. Others may have judged some of them."""
    wanted = [receipt.id for receipt in receipts]
    return rows.find(Receipt, f"WHERE t.id = ANY(%s) AND t.outcome = %s {LOCK}", wanted, Outcome.WAITING)


def _taken_back(bank: str, receipts: Sequence[Receipt]) -> set[str]:
    """Of their names, which are still ours alone, those that a debit was given too."""
    names = [receipt.bank_transaction_id for receipt in receipts]
    return {name for (name,) in rows.run(NAMED, [names, bank, Kind.REVERSAL]).fetchall()}


def _is_plain(receipt: Receipt, payment: Payment) -> bool:
    """What the bank has named since it was stored it may have taken back as well."""
    return not receipt.also_known_as and judge(receipt, payment) == Outcome.APPLIED


def _succeed(bank: str, plain: Sequence[Pair], now: datetime) -> None:
    if not plain:
        return
    for receipt, payment in plain:
        payments.materialise_expiry(payment, now)
        receipt.outcome, receipt.judged_at = Outcome.APPLIED, now
        receipt.payment, receipt.merchant_id = payment, payment.merchant_id
    rows.rewrite([receipt for receipt, _ in plain], ["outcome", "judged_at", "payment", "merchant"])
    paid = [
        Paid(payment, receipt.paid_at, crediting.payer_of(receipt), receipt.is_confirmed)
        for receipt, payment in plain
    ]
    payments.succeed_all(paid, source=accounts.bank(bank), now=now)


def _what(receipt: Receipt) -> tuple[str, str]:
    return receipt.biller_id, receipt.reference1
