"""A fast audit for tests that run it often.

Its own rules compare what services write about exceptions with the tables that it is about.
"""

from core.database import rows
from operations.audit import runner
from operations.audit.rules import AuditRule


def not_resolved(subject_id: str) -> str:
    """SQL: staff have not decided about it, or have reopened it."""
    return f"""(
        SELECT type FROM reconciliation_resolution AS decision WHERE decision.subject_id = {subject_id}
        ORDER BY decision.id DESC LIMIT 1
    ) IN ('dismissed', 'kept', 'booked_returned', 'booked_failed') IS NOT TRUE"""


BANK_ID = "coalesce(nullif(bank_transaction.later_bank_reference, ''), bank_transaction.bank_reference)"
# What needs a decision of staff, as the tables say that the list is about.
OPEN_EXCEPTIONS = f"""
SELECT bank_transaction.id,
    CASE bank_transaction.kind WHEN 'reversal' THEN 'reversal' ELSE bank_transaction.match_result END
        AS reason,
    bank_transaction.bank, bank_transaction.merchant_id, bank_transaction.biller_id,
    bank_transaction.payment_id, bank_transaction.amount, bank_transaction.reference1,
    {BANK_ID} AS bank_reference, bank_transaction.received_at AS opened_at
FROM reconciliation_banktransaction AS bank_transaction
WHERE bank_transaction.match_result IN ('unmatched', 'duplicate', 'time_mismatch', 'amount_mismatch', 'late')
    AND bank_transaction.resolution_state = ''
UNION ALL
SELECT bank_transaction.id, 'excess', bank_transaction.bank, bank_transaction.merchant_id,
    bank_transaction.biller_id, bank_transaction.payment_id, excess.amount, bank_transaction.reference1,
    {BANK_ID}, bank_transaction.received_at
FROM reconciliation_excess AS excess
JOIN reconciliation_banktransaction AS bank_transaction ON bank_transaction.id = excess.bank_transaction_id
WHERE excess.resolution_state = ''
UNION ALL
SELECT notification.id, notification.result, notification.bank, NULL,
    coalesce(bank_transaction.biller_id, ''), NULL, NULL, coalesce(bank_transaction.reference1, ''),
    coalesce({BANK_ID}, ''), notification.received_at
FROM reconciliation_banknotification AS notification
LEFT JOIN reconciliation_banktransaction AS bank_transaction
    ON bank_transaction.id = notification.bank_transaction_id
WHERE notification.result IN ('conflict', 'unreadable', 'fee_differs', 'moved')
    AND {not_resolved("notification.id")}
UNION ALL
SELECT inquiry.notification_id, 'unconfirmed', inquiry.bank, inquiry.merchant_id, '', inquiry.payment_id,
    inquiry.amount, inquiry.reference1, inquiry.bank_reference, inquiry.created_at
FROM reconciliation_confirmationinquiry AS inquiry
WHERE inquiry.notification_id IS NOT NULL AND inquiry.alerted_at IS NOT NULL AND inquiry.confirmed_at IS NULL
    AND {not_resolved("inquiry.notification_id")}
UNION ALL
SELECT refund.id, 'returned', split_part(refund.route, ':', 2), refund.merchant_id, '', refund.payment_id,
    refund.amount, '', '', refund.returned_at
FROM refunds_refund AS refund WHERE refund.returned_at IS NOT NULL AND {not_resolved("refund.id")}
UNION ALL
SELECT found.id, 'contradiction', split_part(found.route, ':', 2), nullif(found.merchant_id, ''), '',
    CASE WHEN starts_with(found.subject_id, 'pay_') THEN found.subject_id
        ELSE (SELECT payment_id FROM refunds_refund WHERE id = found.subject_id) END,
    found.amount, found.subject_id, found.bank_reference, found.created_at
FROM transfers_transfercontradiction AS found WHERE {not_resolved("found.id")}
"""
COLUMNS = "reason, bank, merchant_id, biller_id, payment_id, amount, reference1, bank_reference, opened_at"
OWN_RULES = [
    AuditRule(
        "payment exceptions match their bank transactions",
        """SELECT id, concat_ws(' ',
               CASE bank_transaction.resolution_state WHEN 'attached' THEN '' ELSE payment_id END,
               match_result, bank_transaction.amount, CASE WHEN excess.bank_transaction_id IS NOT NULL THEN
               'excess_' END || coalesce(nullif(excess.resolution_state, ''), 'open'), CASE WHEN
               excess.bank_transaction_id IS NULL THEN coalesce(nullif(bank_transaction.resolution_state, ''),
               'open') END)
           FROM reconciliation_banktransaction AS bank_transaction
           LEFT JOIN reconciliation_excess AS excess ON excess.bank_transaction_id = bank_transaction.id
           WHERE kind = 'credit' AND payment_id IS NOT NULL
               AND match_result IN ('duplicate', 'time_mismatch', 'amount_mismatch', 'late')""",
        """SELECT id, concat_ws(' ', CASE status WHEN 'attached' THEN '' ELSE payment_id END,
               reason, amount, status)
           FROM payments_paymentexception""",
    ),
    AuditRule(
        "payments with exceptions are marked",
        "SELECT DISTINCT payment_id, 'exceptions' FROM payments_paymentexception",
        "SELECT id, 'exceptions' FROM payments_payment WHERE has_exceptions",
    ),
    AuditRule(
        "the list of exceptions is complete",
        f"""SELECT truth.id, concat_ws(' ', {COLUMNS}, upper(concat_ws(' ', truth.id, payment_id,
                nullif(reference1, ''), nullif(bank_reference, ''), nullif(payment.reference, ''))))
            FROM ({OPEN_EXCEPTIONS}) AS truth
            LEFT JOIN (SELECT id AS paid_id, reference FROM payments_payment) AS payment
                ON paid_id = payment_id""",
        f"SELECT id, concat_ws(' ', {COLUMNS}, search_text) FROM reconciliation_reconciliationexception",
    ),
]
RULES = [*runner.RULES, *OWN_RULES]
# All rules in one statement, which is planned once per connection. Then it takes a few milliseconds.
ANY_DIFFERENCE = " UNION ALL ".join(f"SELECT * FROM ({rule.sql}) AS difference" for rule in RULES)


def differences() -> list[str]:
    """The differences that these rules find, a line each."""
    if not rows.run(ANY_DIFFERENCE, []).fetchone():
        return []
    own = [
        runner.Difference(rule.name, *each)
        for rule in OWN_RULES
        for each in rows.run(rule.sql, []).fetchall()
    ]
    return [str(difference) for difference in (*runner.differences(), *own)]
