"""Money in: each payment is in history, ledger, events and at its bank as its status says."""

from console.audit.rules import CREDITED, RECEIVED, Rule, posted, suspense

RULES = [
    Rule(
        "a payment that ended is in the history, and no other",
        f"""SELECT concat_ws(' ', id, CASE status WHEN 'failed' THEN 'failed' ELSE 'payment' END),
                concat_ws(' ', status, {RECEIVED}, currency, merchant_id)
            FROM payments_payment AS payment WHERE status IN ('succeeded', 'refunded', 'failed')""",  # noqa: S608
        """SELECT concat_ws(' ', payment_id, type), concat_ws(' ', status, amount, currency, merchant_id)
           FROM transactions_transaction WHERE type <> 'refund'""",
    ),
    Rule(
        "a payment that succeeded is posted, and no other",
        f"""SELECT concat_ws(' ', paid.id, 'payment', account_id), satang::text
            FROM (
                SELECT payment.id, payment.merchant_id, {RECEIVED} AS received,
                    coalesce(
                        CASE WHEN receipt.outcome = 'applied' THEN 'bank:' || receipt.bank
                            WHEN receipt.id IS NOT NULL THEN {suspense("'bank:' || receipt.bank")} END,
                        'acquirer:' || charge.acquirer
                    ) AS source
                FROM payments_payment AS payment
                LEFT JOIN receipts_receipt AS receipt ON receipt.payment_id = payment.id AND {CREDITED}
                LEFT JOIN payments_cardcharge AS charge ON charge.payment_id = payment.id
                WHERE payment.status IN ('succeeded', 'refunded')
            ) AS paid, LATERAL (
                VALUES ('available:' || paid.merchant_id, paid.received), (paid.source, -paid.received)
            ) AS line (account_id, satang)""",  # noqa: S608
        # Whether it was confirmed by then, the sum of what nobody has confirmed tells (exception_rules).
        posted("journal.fact = 'payment'").replace(
            "entry.account_id)", "replace(entry.account_id, 'unconfirmed:', 'available:'))"
        ),
    ),
    Rule(
        "merchants are told of each payment as its status says",
        """SELECT concat_ws(' ', payment.id, kind), concat('1 to ', payment.merchant_id)
           FROM payments_payment AS payment
           LEFT JOIN payments_cardcharge AS charge ON charge.payment_id = payment.id
           JOIN LATERAL (VALUES
               ('payment.pending', payment.qr_code_id IS NOT NULL OR charge.state = 'waiting'),
               ('payment.succeeded', payment.status IN ('succeeded', 'refunded')),
               ('payment.failed', payment.status = 'failed')
           ) AS event (kind, is_told) ON is_told""",
        # Two events may be there once or not at all, and no row says which: of an expired code, by a setting
        # that may have changed since; of a card that was pending for a while.
        """SELECT concat_ws(' ', subject_id, type), concat(count(*), ' to ', event.merchant_id)
           FROM webhooks_event AS event
           LEFT JOIN payments_payment AS payment ON payment.id = event.subject_id
           LEFT JOIN payments_cardcharge AS charge ON charge.payment_id = event.subject_id
           WHERE starts_with(event.type, 'payment.')
           GROUP BY subject_id, type, event.merchant_id, payment.id, charge.state
           HAVING count(*) > 1 OR event.merchant_id IS DISTINCT FROM payment.merchant_id OR (CASE type
               WHEN 'payment.failed' THEN
                   payment.qr_code_id IS NOT NULL AND payment.status IN ('expired', 'succeeded', 'refunded')
               WHEN 'payment.pending' THEN charge.state = 'ended'
           END) IS NOT TRUE""",
    ),
    Rule(
        "a code's payment succeeded by the one receipt that was credited to it",
        f"""SELECT id, concat_ws(' ', {RECEIVED}, merchant_id, completed_at) FROM payments_payment AS payment
            WHERE qr_code_id IS NOT NULL AND status IN ('succeeded', 'refunded')""",  # noqa: S608
        f"""SELECT coalesce(payment_id, id), concat_ws(' ', amount, merchant_id, paid_at)
            FROM receipts_receipt AS receipt WHERE {CREDITED}""",  # noqa: S608
    ),
    Rule(
        "a code's payment failed by a receipt that declines it",
        """SELECT id, 'declined' FROM payments_payment
           WHERE qr_code_id IS NOT NULL AND status = 'failed'""",
        """SELECT DISTINCT payment.id, receipt.outcome
           FROM receipts_receipt AS receipt
           JOIN payments_payment AS payment ON payment.id = receipt.payment_id
           WHERE receipt.outcome = 'declined' AND payment.status = 'failed'""",
    ),
    Rule(
        "a card's payment is as far as its charge",
        """SELECT id, CASE status WHEN 'pending' THEN 'open' ELSE 'ended' END
           FROM payments_payment WHERE qr_code_id IS NULL""",
        """SELECT payment_id, CASE WHEN state IN ('asked', 'waiting') THEN 'open' ELSE state END
           FROM payments_cardcharge""",
    ),
    Rule(
        "a payment counts its refunds, and is refunded when all of it went back",
        f"""SELECT payment.id, concat(refunded, ' refunded, ', refunding, ' under way, ',
                CASE WHEN refunded = {RECEIVED} THEN 'refunded' ELSE 'succeeded' END)
            FROM payments_payment AS payment JOIN (
                SELECT payment_id,
                    coalesce(sum(amount) FILTER (WHERE status = 'completed'), 0) AS refunded,
                    coalesce(sum(amount) FILTER (WHERE status = 'pending'), 0) AS refunding
                FROM refunds_refund WHERE status IN ('completed', 'pending') GROUP BY payment_id
            ) AS refund ON refund.payment_id = payment.id""",  # noqa: S608
        """SELECT id, concat(amount_refunded, ' refunded, ', amount_refunding, ' under way, ', status)
           FROM payments_payment
           WHERE amount_refunded <> 0 OR amount_refunding <> 0 OR status = 'refunded'""",
    ),
]
