"""Money that did not fit: what waits is in suspense, what was decided is posted and says by whom."""

from console.audit.rules import CREDITED, WAITED, Rule, posted, suspense

# From the money of a refund that came back until somebody gives it to the merchant.
KEPT = "EXISTS (SELECT FROM receipts_act WHERE subject_id = refund.id AND deed = 'kept')"
# A reversal may wait again after it was decided about: then because somebody opened it again.
DECIDED = """(resolution NOT IN ('', 'taken_back') OR resolution = '' AND kind = 'reversal'
    AND outcome = 'unmatched' AND EXISTS (SELECT FROM receipts_act WHERE subject_id = receipt.id))"""
# What the list tells of its rows.
LISTED = "concat_ws(' ', why, bank, merchant_id, payment_id, amount, reference1, bank_transaction_id, since)"
RULES = [
    Rule(
        "money that waits was posted to suspense, and nothing else was",
        f"""SELECT concat_ws(' ', thing.id, 'held', account_id), satang::text
            FROM (
                SELECT id, bank, amount FROM receipts_receipt AS receipt WHERE {WAITED}
                UNION ALL
                SELECT made.id, receipt.bank, made.amount
                FROM receipts_return AS made JOIN receipts_receipt AS receipt ON receipt.id = receipt_id
                WHERE returned_at IS NOT NULL
            ) AS thing,
            LATERAL (VALUES ('bank:' || bank, -amount), ({suspense("'bank:' || bank")}, amount))
                AS line (account_id, satang)""",  # noqa: S608
        posted("fact = 'held' AND NOT starts_with(subject_id, 'ref_')"),
    ),
    Rule(
        "what left suspense left for a reason",
        f"""SELECT concat_ws(' ', made.id, 'sent_back', account_id), satang::text
            FROM receipts_return AS made,
            LATERAL (VALUES ({suspense("route")}, -amount), (route, amount)) AS line (account_id, satang)
            WHERE status = 'completed'
            UNION ALL
            SELECT concat_ws(' ', refund.id, 'accepted', account_id), satang::text
            FROM refunds_refund AS refund,
            LATERAL (VALUES ({suspense("route")}, -amount), ('available:' || merchant_id, amount))
                AS line (account_id, satang)
            WHERE {KEPT}""",  # noqa: S608
        posted("fact IN ('sent_back', 'accepted')"),
    ),
    Rule(
        "what is in suspense is what waits",
        f"""SELECT account_id, sum(satang)::text FROM (
                SELECT {suspense("'bank:' || bank")} AS account_id, amount AS satang
                FROM receipts_receipt AS receipt
                WHERE {WAITED} AND resolution IN ('', 'sending_back')
                UNION ALL
                SELECT {suspense("route")}, amount FROM refunds_refund AS refund
                WHERE returned_at IS NOT NULL AND NOT {KEPT}
            ) AS waiting GROUP BY account_id HAVING sum(satang) <> 0""",  # noqa: S608
        """SELECT id, sum(satang)::text FROM (
               SELECT id, settled AS satang FROM transactions_account WHERE kind = 'suspense'
               UNION ALL
               SELECT account_id, amount FROM transactions_unfolded WHERE starts_with(account_id, 'suspense')
           ) AS part GROUP BY id HAVING sum(satang) <> 0""",
    ),
    Rule(
        "what a bank took back is posted",
        """SELECT concat_ws(' ', id, 'bank:' || bank), amount::text FROM receipts_receipt
           WHERE kind = 'reversal' AND outcome = 'reversed'""",
        """SELECT concat_ws(' ', journal.subject_id, entry.account_id), entry.amount::text
           FROM transactions_journal AS journal
           JOIN transactions_entry AS entry ON entry.journal_id = journal.id
           WHERE journal.fact = 'reversal' AND entry.amount > 0""",
    ),
    Rule(
        "what is lost was decided, and is so until it can be taken after all",
        """SELECT concat_ws(' ', coalesce(posted_as, receipt.id), fact, account_id), satang::text
           FROM receipts_receipt AS receipt
           JOIN receipts_act AS act ON act.subject_id = receipt.id AND act.deed = 'lost'
           JOIN LATERAL (VALUES
               ('lost', true, amount),
               ('recovered', resolution <> 'lost' OR act.round < (
                   SELECT max(round) FROM receipts_act WHERE subject_id = receipt.id), -amount)
           ) AS step (fact, is_done, gone) ON is_done,
           LATERAL (VALUES ('losses', -gone), ('bank:' || bank, gone)) AS line (account_id, satang)""",
        posted("fact IN ('lost', 'recovered')"),
    ),
    Rule(
        "what was counted once was decided, and left suspense until that was a mistake",
        f"""SELECT concat_ws(' ', coalesce(posted_as, receipt.id), fact, account_id), satang::text
           FROM receipts_receipt AS receipt
           JOIN receipts_act AS act ON act.subject_id = receipt.id AND act.deed = 'merged'
           JOIN LATERAL (VALUES
               ('merged', true, amount),
               ('unmerged', resolution <> 'merged' OR act.round < (
                   SELECT max(round) FROM receipts_act WHERE subject_id = receipt.id), -amount)
           ) AS step (fact, is_done, gone) ON is_done,
           LATERAL (VALUES ({suspense("'bank:' || bank")}, -gone), ('bank:' || bank, gone))
               AS line (account_id, satang)""",  # noqa: S608
        posted("fact IN ('merged', 'unmerged')"),
    ),
    Rule(
        "what was counted once is probably the same transaction as the one that counts",
        "SELECT id, 'merged' FROM receipts_receipt WHERE resolution = 'merged'",
        """SELECT DISTINCT receipt.id, 'merged'
           FROM receipts_receipt AS receipt
           JOIN receipts_act AS act ON act.subject_id = receipt.id AND act.deed = 'merged',
           LATERAL receipts_probably_same(receipt.id) AS same (id)
           WHERE resolution = 'merged' AND same.id = merged_with
               AND act.round = (SELECT max(round) FROM receipts_act WHERE subject_id = receipt.id)""",
    ),
    Rule(
        "what a bank took back by our order was ordered",
        "SELECT id, amount::text FROM receipts_receipt WHERE outcome = 'ordered'",
        """SELECT receipt.id, sum(transfer.amount)::text
           FROM receipts_receipt AS receipt JOIN transfers_transfer AS transfer
               ON route = 'bank:' || bank AND charge_id IN (bank_transaction_id, also_known_as)
           WHERE outcome = 'ordered' AND charge_id <> '' AND state = 'succeeded'
           GROUP BY receipt.id""",
    ),
    Rule(
        "what a bank took back of a payment was taken from its merchant",
        """SELECT reversal_id, concat_ws(' ', payment_id, route, amount) FROM refunds_takeback""",
        """SELECT receipt.id, concat_ws(' ', payment_id, 'bank:' || bank, -sum(entry.amount))
           FROM receipts_receipt AS receipt
           JOIN transactions_journal AS journal ON fact = 'reversal' AND subject_id = receipt.id
           JOIN transactions_entry AS entry ON entry.journal_id = journal.id
           JOIN transactions_account AS account ON account.id = entry.account_id
           WHERE receipt.outcome = 'reversed' AND account.kind IN ('available', 'owed', 'unconfirmed')
           GROUP BY receipt.id""",
    ),
    Rule(
        "refunds show what a bank took back",
        """SELECT concat_ws(' ', reversal_id, payment_id, route), shown::text
           FROM refunds_takeback WHERE shown > 0""",
        """SELECT concat_ws(' ', reversal_id, payment_id, route), sum(amount)::text
           FROM refunds_refund WHERE reversal_id IS NOT NULL GROUP BY reversal_id, payment_id, route""",
    ),
    Rule(
        "what refunds do not show of it has no room beside the others",
        "SELECT payment_id, 'full' FROM refunds_takeback WHERE shown < amount",
        """SELECT payment.id, 'full'
           FROM refunds_takeback AS takeback JOIN payments_payment AS payment ON payment.id = payment_id
           WHERE shown < takeback.amount
               AND amount_refunded + amount_refunding = coalesce(amount_received, payment.amount)""",
    ),
    Rule(
        "a receipt is as far as its return",
        """SELECT id, resolution FROM receipts_receipt
           WHERE resolution IN ('sending_back', 'sent_back')""",
        """SELECT receipt_id, CASE status WHEN 'pending' THEN 'sending_back' ELSE 'sent_back' END
           FROM receipts_return
           WHERE status = 'pending' OR status = 'completed' AND returned_at IS NULL""",
    ),
    Rule(
        "what was decided says by whom",
        f"""SELECT id, CASE resolution WHEN 'sending_back' THEN 'sent_back'
                WHEN '' THEN 'reopened' ELSE resolution END
            FROM receipts_receipt AS receipt WHERE {DECIDED}""",  # noqa: S608
        f"""SELECT DISTINCT ON (subject_id) subject_id,
                CASE deed WHEN 'sent_back_by_hand' THEN 'sent_back' ELSE deed END
            FROM receipts_act JOIN receipts_receipt AS receipt ON receipt.id = subject_id
            WHERE {DECIDED} AND deed <> 'confirmed' ORDER BY subject_id, receipts_act.id DESC""",  # noqa: S608
    ),
    Rule(
        "money that only a statement reports is held as unconfirmed, and nothing else is",
        f"""SELECT 'unconfirmed:' || merchant_id, sum(receipt.amount - coalesce(takeback.amount, 0))::text
            FROM receipts_receipt AS receipt
            LEFT JOIN refunds_takeback AS takeback ON takeback.payment_id = receipt.payment_id
            WHERE {CREDITED} AND NOT is_confirmed GROUP BY merchant_id
            HAVING sum(receipt.amount - coalesce(takeback.amount, 0)) <> 0""",  # noqa: S608
        """SELECT id, sum(satang)::text FROM (
               SELECT id, settled AS satang FROM transactions_account WHERE kind = 'unconfirmed'
               UNION ALL
               SELECT account_id, amount FROM transactions_unfolded
               WHERE starts_with(account_id, 'unconfirmed:')
           ) AS part GROUP BY id HAVING sum(satang) <> 0""",
    ),
    Rule(
        "money of a statement was confirmed by its bank or by somebody who did not upload it",
        """SELECT id, 'confirmed' FROM receipts_receipt
           WHERE source = 'statement' AND kind = 'credit' AND is_confirmed""",
        """SELECT receipt.id, 'confirmed' FROM receipts_receipt AS receipt
           WHERE source = 'statement' AND kind = 'credit' AND is_confirmed AND (
               EXISTS (SELECT FROM receipts_notice WHERE receipt_id = receipt.id
                   AND source IN ('callback', 'inquiry') AND verdict IN ('new', 'repeat'))
               OR EXISTS (SELECT FROM receipts_act WHERE subject_id = receipt.id AND deed = 'confirmed'
                   AND by <> ALL (SELECT imported_by FROM receipts_statementline AS line
                       JOIN receipts_statement AS statement ON statement.id = line.statement_id
                       WHERE line.receipt_id = receipt.id))
           )""",
    ),
    Rule(
        "money that staff moved is not probably the same transaction as other money that was moved",
        "SELECT '', '' WHERE false",
        """SELECT DISTINCT receipt.id, concat(receipt.resolution, ', probably the same as ', other.id)
           FROM receipts_receipt AS receipt,
           LATERAL receipts_probably_same(receipt.id) AS same (id)
           JOIN receipts_receipt AS other ON other.id = same.id
           WHERE receipt.resolution IN ('accepted', 'attached', 'sending_back', 'sent_back') AND (
               other.outcome = 'applied'
               OR other.resolution IN ('accepted', 'attached', 'sending_back', 'sent_back')
           )""",
    ),
    Rule(
        "an order that staff booked as returned is returned",
        """SELECT act.subject_id, 'returned'
           FROM receipts_act AS act WHERE deed = 'booked_returned'""",
        """SELECT contradiction.id, transfer.state
           FROM transfers_contradiction AS contradiction
           JOIN receipts_act AS act ON act.subject_id = contradiction.id AND deed = 'booked_returned'
           JOIN transfers_transfer AS transfer ON transfer.id = contradiction.subject_id""",
    ),
    Rule(
        "a card payment that staff booked as failed has failed",
        """SELECT act.subject_id, 'failed'
           FROM receipts_act AS act WHERE deed = 'booked_failed'""",
        """SELECT contradiction.id, payment.status
           FROM transfers_contradiction AS contradiction
           JOIN receipts_act AS act ON act.subject_id = contradiction.id AND deed = 'booked_failed'
           JOIN payments_payment AS payment ON payment.id = contradiction.subject_id""",
    ),
    Rule(
        "a payment shows the money that came for it and did not fit",
        """SELECT id, concat_ws(' ', CASE resolution WHEN 'attached' THEN '' ELSE payment_id END,
               outcome, amount, coalesce(nullif(resolution, ''), 'open'))
           FROM receipts_receipt
           WHERE kind = 'credit' AND payment_id IS NOT NULL
               AND outcome IN ('duplicate', 'amount_mismatch', 'late')""",
        """SELECT id, concat_ws(' ', CASE status WHEN 'attached' THEN '' ELSE payment_id END,
               reason, amount, status)
           FROM payments_paymentexception""",
    ),
    Rule(
        "a payment knows whether such money came for it",
        "SELECT DISTINCT payment_id, 'exceptions' FROM payments_paymentexception",
        "SELECT id, 'exceptions' FROM payments_payment WHERE has_exceptions",
    ),
    Rule(
        "what is listed for staff is what waits",
        f"SELECT id, {LISTED} FROM receipts_open",  # noqa: S608
        f"SELECT id, {LISTED} FROM receipts_waiting",  # noqa: S608
    ),
]
