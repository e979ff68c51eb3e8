"""What nobody may be able to tell the audit: by rule, changes of the books as SQL, triggers off."""


def one(table: str, where: str) -> str:
    """The SQL of the id of some row."""
    return f"(SELECT id FROM {table} WHERE {where} ORDER BY id LIMIT 1)"


PAID = one(
    "payments_payment",
    "status = 'succeeded' AND qr_code_id IS NOT NULL AND amount_refunded = 0 AND amount_refunding = 0",
)
FAILED = one("payments_payment", "status = 'failed' AND qr_code_id IS NOT NULL")
PAYS = f"type = 'payment' AND payment_id = {PAID}"
JOURNAL = one("transactions_journal", "fact = 'payment'")
HELD = one("transactions_journal", "fact = 'held'")
APPLIED = one("receipts_receipt", "outcome = 'applied'")
CONFIRMED = one("receipts_receipt", "source = 'statement' AND is_confirmed AND kind = 'credit'")
WAITS = one("receipts_receipt", "kind = 'credit' AND outcome = 'unmatched' AND resolution = ''")
REVERSED = one("receipts_receipt", "outcome = 'reversed'")
BY_BANK = one("refunds_refund", "reversal_id IS NOT NULL")
# One that must be there: a card's `payment.pending` need not be, nor an expired code's `payment.failed`.
EVENT = """(SELECT id FROM webhooks_event AS event WHERE type = '{}' AND NOT EXISTS (
    SELECT FROM payments_payment AS payment WHERE payment.id = event.subject_id
    AND (qr_code_id IS NULL OR event.type = 'payment.failed' AND status <> 'failed')
) ORDER BY id LIMIT 1)"""
COMPLETED = one("refunds_refund", "status = 'completed' AND returned_at IS NULL")
OVERDRAWN = {"available": -1, "reserved": -1, "unconfirmed": -1, "suspense": -1, "owed": 1, "losses": 1}
SENT = one("withdrawals_withdrawal", "status = 'succeeded'")
# The statement has a line of what paid for a payment, and none of a second payment that staff moved.
ONE_LINE = """
INSERT INTO receipts_statementline (
    statement_id, number, bank, account, day, digest, occurrence, line_sealed, result, why, kind, reference1,
    amount, paid_at, receipt_id
)
SELECT 'stm_lie', 1, bank, biller_id, now(), 'lie', 1, '', 'attached', '', 'credit', reference1, amount,
    paid_at, id
FROM receipts_receipt AS receipt WHERE outcome = 'applied' AND EXISTS (
    SELECT FROM receipts_receipt AS other WHERE other.reference1 = receipt.reference1
        AND other.amount = receipt.amount AND other.resolution = '{}'
) LIMIT 1
"""


def lose_event(kind: str) -> str:
    return f"DELETE FROM webhooks_event WHERE id = {EVENT.format(kind)}"


def repeat_event(kind: str) -> str:
    return f"""INSERT INTO webhooks_event
            (id, merchant_id, type, subject_id, body, created_at, actor, request_id)
        SELECT 'evt_again', merchant_id, type, subject_id, body, created_at, actor, request_id
        FROM webhooks_event WHERE id = {EVENT.format(kind)}"""


def lose_posting(fact: str) -> str:
    """A whole journal is gone, and its accounts never knew it: only who it was for can tell."""
    gone = f"(SELECT id FROM transactions_journal WHERE fact = '{fact}' ORDER BY id LIMIT 1)"
    return f"""
        UPDATE transactions_account AS account SET settled = settled - entry.amount
        FROM transactions_entry AS entry WHERE entry.account_id = account.id AND journal_id = {gone};
        DELETE FROM transactions_entry WHERE journal_id = {gone};
        DELETE FROM transactions_journal WHERE id = {gone}"""


LIES = {
    "an account holds what its entries say": [
        "UPDATE transactions_account SET settled = settled + 1 WHERE kind = 'available'",
        f"DELETE FROM transactions_entry WHERE journal_id = {JOURNAL}",
        "DELETE FROM transactions_account WHERE kind = 'bank'",
    ],
    "what waits to be folded is an entry": [
        "UPDATE transactions_unfolded SET amount = amount + 1",
        "UPDATE transactions_unfolded SET account_id = 'bank:other'",
        "INSERT INTO transactions_unfolded (entry_id, account_id, amount) VALUES (0, 'bank:sandbox', 1)",
    ],
    "the entries of a journal sum to zero and move what it says, when it says": [
        f"UPDATE transactions_entry SET amount = amount + 1 WHERE journal_id = {JOURNAL} AND amount > 0",
        f"UPDATE transactions_entry SET amount = amount * 2 WHERE journal_id = {JOURNAL}",
        f"UPDATE transactions_entry SET created_at = now() WHERE journal_id = {JOURNAL} AND amount > 0",
        f"DELETE FROM transactions_entry WHERE journal_id = {JOURNAL}",
        f"DELETE FROM transactions_journal WHERE id = {JOURNAL}",
    ],
    "what banks hold for us is what merchants and staff have": [
        "UPDATE transactions_account SET settled = settled + 1 WHERE kind = 'suspense'",
        "UPDATE transactions_unfolded SET amount = amount + 1 WHERE account_id = 'bank:sandbox'",
    ],
    "no account is overdrawn": [
        "ALTER TABLE transactions_account DROP CONSTRAINT account_not_overdrawn;"
        f"UPDATE transactions_account SET settled = {satang} WHERE kind = '{kind}'"
        for kind, satang in OVERDRAWN.items()
    ],
    "sandbox money and live money never meet": [
        "UPDATE transactions_entry SET account_id = 'suspense' WHERE account_id = 'suspense:sandbox'",
        f"""INSERT INTO transactions_account (id, kind, settled) VALUES ('bank:x', 'bank', 0);
            UPDATE transactions_entry SET account_id = 'bank:x'
            WHERE journal_id = {JOURNAL} AND amount < 0""",
        "UPDATE merchants_merchant SET mode = 'live', bank = ''",
    ],
    "other postings go where their fact says": [
        f"""UPDATE transactions_entry SET account_id = 'reserved:mch_other' WHERE id = (
            SELECT min(id) FROM transactions_entry WHERE journal_id = (
                SELECT min(id) FROM transactions_journal WHERE fact = '{fact}'))"""
        for fact in (
            "reversal", "owed_filled", "held", "accepted", "sent_back", "lost", "recovered", "confirmed",
        )
    ],
    "a payment that ended is in the history, and no other": [
        f"DELETE FROM transactions_transaction WHERE payment_id = {PAID}",
        f"DELETE FROM transactions_transaction WHERE payment_id = {FAILED}",
        f"UPDATE transactions_transaction SET amount = amount + 1 WHERE {PAYS}",
        f"UPDATE transactions_transaction SET status = 'refunded' WHERE {PAYS}",
        f"UPDATE transactions_transaction SET merchant_id = 'mch_other' WHERE {PAYS}",
        f"UPDATE payments_payment SET amount_received = amount - 1 WHERE id = {PAID}",
        """INSERT INTO transactions_transaction
               (id, merchant_id, payment_id, type, status, amount, currency, created_at)
           SELECT 'txn_x', merchant_id, id, 'payment', 'succeeded', amount, 'THB', now()
           FROM payments_payment WHERE status = 'pending' LIMIT 1""",
    ],
    "a payment that succeeded is posted, and no other": [
        lose_posting("payment"),
        f"UPDATE transactions_entry SET account_id = 'bank:x' WHERE journal_id = {JOURNAL} AND amount < 0",
        f"UPDATE transactions_journal SET subject_id = {FAILED} WHERE id = {JOURNAL}",
        """UPDATE transactions_entry SET account_id = 'bank:sandbox' WHERE account_id = 'suspense:sandbox'
           AND journal_id IN (SELECT id FROM transactions_journal WHERE fact = 'payment')""",
    ],
    "merchants are told of each payment as its status says": [
        lose_event("payment.pending"),
        lose_event("payment.succeeded"),
        lose_event("payment.failed"),
        repeat_event("payment.pending"),
        repeat_event("payment.succeeded"),
        repeat_event("payment.failed"),
        f"UPDATE webhooks_event SET merchant_id = 'mch_other' WHERE id = {EVENT.format('payment.failed')}",
        f"UPDATE webhooks_event SET type = 'payment.failed' WHERE id = {EVENT.format('payment.pending')}",
    ],
    "a code's payment succeeded by the one receipt that was credited to it": [
        "DELETE FROM receipts_receipt WHERE outcome = 'applied'",
        "UPDATE receipts_receipt SET amount = amount - 1 WHERE outcome = 'applied'",
        "UPDATE receipts_receipt SET paid_at = paid_at - interval '1 hour' WHERE outcome = 'applied'",
        "UPDATE receipts_receipt SET payment_id = NULL WHERE outcome = 'applied'",
        "UPDATE receipts_receipt SET outcome = 'late' WHERE outcome = 'applied'",
    ],
    "a code's payment failed by a receipt that declines it": [
        "UPDATE receipts_receipt SET outcome = 'unmatched' WHERE outcome = 'declined'"
    ],
    "a card's payment is as far as its charge": [
        "UPDATE payments_cardcharge SET state = 'ended', ended_at = now() WHERE state = 'waiting'",
        "UPDATE payments_cardcharge SET state = 'waiting', ended_at = NULL WHERE state = 'ended'",
        "DELETE FROM payments_cardcharge WHERE state = 'asked'",
    ],
    "a payment counts its refunds, and is refunded when all of it went back": [
        "UPDATE payments_payment SET amount_refunding = amount_refunding - 1 WHERE amount_refunding > 0",
        """UPDATE payments_payment SET amount_refunded = amount_refunded - 1
           WHERE amount_refunded > 0 AND status = 'succeeded'""",
        f"UPDATE payments_payment SET amount_refunding = 1 WHERE id = {PAID}",
        "UPDATE payments_payment SET status = 'succeeded' WHERE status = 'refunded'",
    ],
    "money that waits was posted to suspense, and nothing else was": [
        lose_posting("held"),
        f"UPDATE receipts_receipt SET amount = amount + 1 WHERE id = {WAITS}",
        f"UPDATE receipts_receipt SET kind = 'decline' WHERE id = {WAITS}",
        "UPDATE receipts_return SET returned_at = NULL WHERE returned_at IS NOT NULL",
        f"UPDATE transactions_journal SET subject_id = {APPLIED} WHERE id = {HELD}",
    ],
    "what left suspense left for a reason": [
        lose_posting("sent_back"),
        lose_posting("accepted"),
        "DELETE FROM receipts_act WHERE deed = 'kept'",
        "DELETE FROM receipts_return WHERE by_hand",
        "UPDATE receipts_return SET route = 'bank:other' WHERE by_hand",
        "UPDATE receipts_return SET amount = amount - 1 WHERE by_hand",
    ],
    "what is in suspense is what waits": [
        "UPDATE transactions_account SET settled = settled + 1 WHERE kind = 'suspense'",
        "UPDATE receipts_receipt SET resolution = '', resolved_at = NULL WHERE resolution = 'taken_back'",
        f"UPDATE receipts_receipt SET resolution = 'taken_back', resolved_at = now() WHERE id = {WAITS}",
        "UPDATE refunds_refund SET returned_at = NULL WHERE returned_at IS NOT NULL",
    ],
    "what a bank took back is posted": [
        lose_posting("reversal"),
        "UPDATE receipts_receipt SET outcome = 'unmatched' WHERE outcome = 'reversed'",
        "UPDATE receipts_receipt SET amount = amount - 1 WHERE outcome = 'reversed'",
        "UPDATE receipts_receipt SET outcome = 'reversed' WHERE kind = 'reversal' AND resolution = ''",
    ],
    "what is lost was decided, and is so until it can be taken after all": [
        lose_posting("lost"),
        lose_posting("recovered"),
        "DELETE FROM receipts_act WHERE deed = 'lost'",
        "UPDATE receipts_receipt SET resolution = '', resolved_at = NULL WHERE resolution = 'lost'",
        "UPDATE receipts_receipt SET amount = amount + 1 WHERE resolution = 'lost'",
        "UPDATE receipts_act SET posted_as = NULL WHERE posted_as LIKE 'los_%'",
        "UPDATE receipts_act SET round = round + 10 WHERE deed = 'reopened'",
    ],
    "what was counted once was decided, and left suspense until that was a mistake": [
        lose_posting("merged"),
        lose_posting("unmerged"),
        "DELETE FROM receipts_act WHERE deed = 'merged'",
    ],
    "what was counted once is probably the same transaction as the one that counts": [
        "UPDATE receipts_act SET merged_with = subject_id WHERE deed = 'merged'",
    ],
    "what a bank took back by our order was ordered": [
        "DELETE FROM transfers_transfer WHERE charge_id <> ''",
        "UPDATE transfers_transfer SET amount = amount - 1 WHERE charge_id <> ''",
        f"UPDATE receipts_receipt SET outcome = 'ordered' WHERE id = {REVERSED}",
    ],
    "what a bank took back of a payment was taken from its merchant": [
        "DELETE FROM refunds_takeback",
        "UPDATE refunds_takeback SET amount = amount + 1",
        "UPDATE refunds_takeback SET route = 'bank:other'",
        "UPDATE receipts_receipt SET payment_id = NULL WHERE outcome = 'reversed'",
    ],
    "refunds show what a bank took back": [
        f"UPDATE refunds_refund SET reversal_id = {APPLIED} WHERE id = {BY_BANK}",
        f"UPDATE refunds_refund SET route = 'bank:other' WHERE id = {BY_BANK}",
        f"UPDATE refunds_refund SET amount = amount + 1 WHERE id = {BY_BANK}",
        "UPDATE refunds_takeback SET shown = shown - 1 WHERE shown > 0",
    ],
    "what refunds do not show of it has no room beside the others": [
        "UPDATE refunds_takeback SET shown = shown - 1 WHERE shown = amount",
    ],
    "a receipt is as far as its return": [
        "UPDATE receipts_receipt SET resolution = 'sent_back' WHERE resolution = 'sending_back'",
        "UPDATE receipts_receipt SET resolution = '', resolved_at = NULL WHERE resolution = 'sending_back'",
        "DELETE FROM receipts_return WHERE status = 'pending'",
        "UPDATE receipts_return SET status = 'canceled' WHERE status = 'pending'",
    ],
    "what was decided says by whom": [
        "DELETE FROM receipts_act WHERE deed = 'attached'",
        "DELETE FROM receipts_act WHERE by = 'policy:late_money'",
        "UPDATE receipts_act SET deed = 'sent_back' WHERE deed = 'dismissed'",
        "DELETE FROM receipts_act WHERE deed = 'reopened'",
        "UPDATE receipts_receipt SET resolution = '', resolved_at = NULL WHERE resolution = 'dismissed'",
        f"UPDATE receipts_receipt SET resolution = 'sent_back', resolved_at = now() WHERE id = {WAITS}",
    ],
    "money that only a statement reports is held as unconfirmed, and nothing else is": [
        "UPDATE receipts_receipt SET is_confirmed = true WHERE NOT is_confirmed",
        f"UPDATE receipts_receipt SET is_confirmed = false WHERE id = {CONFIRMED}",
        "UPDATE transactions_account SET settled = settled + 1 WHERE kind = 'unconfirmed'",
        lose_posting("confirmed"),
        """UPDATE transactions_unfolded SET account_id = 'available:' || split_part(account_id, ':', 2)
           WHERE account_id LIKE 'unconfirmed:%'""",
    ],
    "money of a statement was confirmed by its bank or by somebody who did not upload it": [
        "DELETE FROM receipts_act WHERE deed = 'confirmed'",
        "UPDATE receipts_act SET by = 'malee' WHERE deed = 'confirmed'",
        "UPDATE receipts_receipt SET is_confirmed = true WHERE NOT is_confirmed",
    ],
    "money that staff moved is not probably the same transaction as other money that was moved": [
        ONE_LINE.format("sent_back"),
        ONE_LINE.format("attached"),
    ],
    "an order that staff booked as returned is returned": [
        """UPDATE transfers_transfer SET state = 'succeeded', failure_code = '' WHERE id IN (
            SELECT contradiction.subject_id FROM transfers_contradiction AS contradiction
            JOIN receipts_act AS act ON act.subject_id = contradiction.id WHERE deed = 'booked_returned')""",
    ],
    "a card payment that staff booked as failed has failed": [
        """UPDATE payments_payment SET status = 'pending', failure_code = NULL WHERE id IN (
            SELECT contradiction.subject_id FROM transfers_contradiction AS contradiction
            JOIN receipts_act AS act ON act.subject_id = contradiction.id WHERE deed = 'booked_failed')""",
    ],
    "a payment shows the money that came for it and did not fit": [
        "DELETE FROM payments_paymentexception WHERE status = 'open'",
        "UPDATE payments_paymentexception SET amount = amount + 1",
        "UPDATE payments_paymentexception SET status = 'sent_back' WHERE status = 'open'",
        "UPDATE payments_paymentexception SET payment_id = 'pay_other' WHERE status = 'open'",
    ],
    "a payment knows whether such money came for it": [
        "UPDATE payments_payment SET has_exceptions = false",
        f"UPDATE payments_payment SET has_exceptions = true WHERE id = {FAILED}",
    ],
    "what is listed for staff is what waits": [
        f"DELETE FROM receipts_waiting WHERE id = {WAITS}",
        f"UPDATE receipts_waiting SET amount = amount + 1 WHERE id = {WAITS}",
        "DELETE FROM receipts_act WHERE deed IN ('dismissed', 'kept')",
        "DELETE FROM receipts_act WHERE deed = 'reopened' AND subject_id LIKE 'ntc_%'",
        f"UPDATE receipts_receipt SET resolution = 'taken_back', resolved_at = now() WHERE id = {WAITS}",
    ],
    "the tallies and what is uncounted are what the history has": [
        "DELETE FROM transactions_uncounted",
        """INSERT INTO transactions_tally (merchant_id, span, begins_at, type, status, count)
           VALUES ('mch_x', 'day', now(), 'payment', 'succeeded', 1)""",
    ],
    "a refund is in the history": [
        "DELETE FROM transactions_transaction WHERE type = 'refund'",
        "UPDATE transactions_transaction SET amount = amount - 1 WHERE type = 'refund'",
        "UPDATE transactions_transaction SET status = 'failed' WHERE type = 'refund' AND status = 'pending'",
    ],
    "a refund is posted as its status says": [
        lose_posting("refund_reserved"),
        lose_posting("refund_paid"),
        lose_posting("refund_released"),
        f"UPDATE refunds_refund SET route = 'bank:other' WHERE id = {COMPLETED}",
        "UPDATE refunds_refund SET returned_at = NULL WHERE returned_at IS NOT NULL",
        f"UPDATE refunds_refund SET status = 'canceled', completed_at = NULL WHERE id = {COMPLETED}",
    ],
    "merchants are told how each refund ended": [
        lose_event("refund.completed"),
        lose_event("refund.failed"),
        repeat_event("refund.completed"),
    ],
    "a withdrawal is posted as its status says": [
        lose_posting("withdrawal_reserved"),
        lose_posting("withdrawal_paid"),
        lose_posting("withdrawal_released"),
        lose_posting("withdrawal_returned"),
        f"UPDATE withdrawals_withdrawal SET amount = amount - 1 WHERE id = {SENT}",
        f"UPDATE withdrawals_withdrawal SET status = 'processing', completed_at = NULL WHERE id = {SENT}",
    ],
    "merchants are told of each step of a withdrawal": [
        lose_event("withdrawal.pending"),
        lose_event("withdrawal.processed"),
        lose_event("withdrawal.succeeded"),
        lose_event("withdrawal.failed"),
        repeat_event("withdrawal.processed"),
    ],
    "a key that requested a withdrawal or a refund has the scope for it": [
        "UPDATE merchants_apikey SET scopes = array_remove(scopes, 'withdrawals:write')",
        "UPDATE merchants_apikey SET scopes = array_remove(scopes, 'refunds:write')",
        "DELETE FROM merchants_apikey",
    ],
    "what is reserved is what refunds and withdrawals under way need": [
        "UPDATE transactions_account SET settled = settled + 1 WHERE kind = 'reserved'",
        "UPDATE refunds_refund SET amount = amount + 1 WHERE status = 'pending'",
    ],
    "the order to a bank is as far as its refund or withdrawal": [
        "DELETE FROM transfers_transfer WHERE state = 'queued'",
        "UPDATE transfers_transfer SET amount = amount + 1",
        "UPDATE transfers_transfer SET state = 'told', ended_at = NULL WHERE state = 'succeeded'",
        """UPDATE transfers_transfer SET state = 'told', told_at = now()
           WHERE state = 'queued' AND purpose = 'withdrawal'""",
    ],
    "a withdrawal waits, is rejected or may leave as its approval says": [
        "DELETE FROM approvals_approval WHERE kind = 'withdrawal' AND status = 'within_limits'",
        "UPDATE approvals_approval SET amount = amount - 1 WHERE kind = 'withdrawal'",
        "UPDATE approvals_approval SET account_last4 = '0000' WHERE kind = 'withdrawal'",
        """UPDATE approvals_approval SET status = 'approved', decided_by = 'staff:x', decided_at = now()
           WHERE kind = 'withdrawal' AND status = 'waiting'""",
        "UPDATE withdrawals_withdrawal SET awaiting_approval = false",
    ],
    "a refund waits, is rejected or may leave as its approval says": [
        "UPDATE approvals_approval SET amount = amount - 1 WHERE kind = 'refund'",
        "UPDATE refunds_refund SET awaiting_approval = false",
        "UPDATE refunds_refund SET awaiting_approval = true WHERE status = 'pending' AND route <> ''",
    ],
    "a return waits, is canceled or may leave as its approval says": [
        "DELETE FROM approvals_approval WHERE kind = 'return_by_hand'",
        "UPDATE approvals_approval SET amount = amount - 1 WHERE kind = 'return'",
        """UPDATE approvals_approval SET status = 'rejected', reason = 'item_limit', decided_by = 'staff:x',
               decided_at = now(), why = 'x'
           WHERE kind = 'return' AND status IN ('within_limits', 'approved')""",
    ],
    "what is lost was within the limits or approved": [
        "DELETE FROM approvals_approval WHERE kind = 'write_off'",
        "DELETE FROM receipts_act WHERE deed = 'lost'",
    ],
    "an order is held while its approval waits": [
        "UPDATE transfers_transfer SET state = 'queued' WHERE state = 'held'",
        "UPDATE transfers_transfer SET state = 'held' WHERE state = 'queued'",
    ],
    "a bank has no order that was not approved": [
        """UPDATE approvals_approval SET status = 'canceled', reason = 'item_limit', decided_at = now()
           WHERE subject_id IN (SELECT id FROM transfers_transfer WHERE state = 'succeeded')""",
        "UPDATE transfers_transfer SET told_at = now() WHERE state = 'held'",
    ],
    "an order that staff ended as never arrived was within the limits or approved": [
        "DELETE FROM approvals_approval WHERE kind = 'never_arrived' AND status = 'within_limits'",
        "UPDATE approvals_approval SET amount = amount - 1 WHERE kind = 'never_arrived'",
        """UPDATE transfers_transfer SET state = 'failed', settled_by = 'x', failure_code = 'never_arrived',
               ended_at = now() WHERE state = 'told'""",
    ],
    "nobody is asked whether an order never arrived that is over": [
        """UPDATE transfers_transfer SET state = 'succeeded', ended_at = now() WHERE id IN (
               SELECT subject_id FROM approvals_approval
               WHERE kind = 'never_arrived' AND status = 'waiting')""",
    ],
    "who decides about outgoing money is not who asked for it": [
        """ALTER TABLE approvals_approval DROP CONSTRAINT approval_decided_by_another;
           UPDATE approvals_approval SET decided_by = requested_by WHERE status = 'approved'""",
    ],
}  # fmt: skip
