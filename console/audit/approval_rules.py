"""Outgoing money: what needed a second person waited for one, and nothing left before."""

from console.audit.rules import Rule

# What the row of a subject says of its approval: it waits, was rejected, or may leave.
SAYS = """CASE WHEN awaiting_approval THEN 'waiting'
    WHEN failure_code = 'rejected_by_staff' THEN 'rejected' ELSE 'free' END"""
RULES = [
    Rule(
        "a withdrawal waits, is rejected or may leave as its approval says",
        f"""SELECT id, concat_ws(' ', merchant_id, amount, bank_code, account_last4, {SAYS})
            FROM withdrawals_withdrawal""",  # noqa: S608
        """SELECT subject_id, concat_ws(' ', merchant_id, amount, bank_code, account_last4,
               CASE WHEN status IN ('waiting', 'rejected') THEN status ELSE 'free' END)
           FROM approvals_approval WHERE kind = 'withdrawal'""",
    ),
    Rule(
        "a refund waits, is rejected or may leave as its approval says",
        f"""SELECT refund.id, concat_ws(' ', refund.merchant_id, refund.amount, {SAYS})
            FROM refunds_refund AS refund
            LEFT JOIN approvals_approval AS approval ON approval.subject_id = refund.id AND kind = 'refund'
            WHERE approval.id IS NOT NULL OR awaiting_approval OR failure_code = 'rejected_by_staff'""",  # noqa: S608
        """SELECT subject_id, concat_ws(' ', merchant_id, amount,
               CASE WHEN status IN ('waiting', 'rejected') THEN status ELSE 'free' END)
           FROM approvals_approval WHERE kind = 'refund'""",
    ),
    Rule(
        "a return waits, is canceled or may leave as its approval says",
        """SELECT made.id, concat_ws(' ', made.amount, CASE
               WHEN by_hand AND made.status = 'pending' OR state = 'held' THEN 'waiting'
               WHEN made.status = 'canceled' AND approval.status IN ('rejected', 'canceled') THEN 'canceled'
               ELSE 'free'
           END)
           FROM receipts_return AS made
           LEFT JOIN approvals_approval AS approval
               ON approval.subject_id = made.id AND kind IN ('return', 'return_by_hand')
           LEFT JOIN transfers_transfer AS transfer ON transfer.id = made.id
           WHERE by_hand OR approval.id IS NOT NULL""",
        """SELECT subject_id, concat_ws(' ', amount, CASE status
               WHEN 'waiting' THEN status WHEN 'rejected' THEN 'canceled' WHEN 'canceled' THEN status
               ELSE 'free'
           END)
           FROM approvals_approval WHERE kind IN ('return', 'return_by_hand')""",
    ),
    Rule(
        "what is lost was within the limits or approved",
        "SELECT subject_id, count(*)::text FROM receipts_act WHERE deed = 'lost' GROUP BY subject_id",
        """SELECT subject_id, count(*)::text FROM approvals_approval
           WHERE kind = 'write_off' AND status IN ('within_limits', 'approved') GROUP BY subject_id""",
    ),
    Rule(
        "an order is held while its approval waits",
        "SELECT id, 'held' FROM transfers_transfer WHERE state = 'held'",
        """SELECT subject_id, 'held' FROM approvals_approval
           WHERE status = 'waiting' AND kind IN ('withdrawal', 'refund', 'return')""",
    ),
    Rule(
        "a bank has no order that was not approved",
        """SELECT transfer.id, 'approved' FROM transfers_transfer AS transfer
           JOIN approvals_approval ON subject_id = transfer.id AND kind <> 'never_arrived'
           WHERE told_at IS NOT NULL""",
        """SELECT transfer.id, CASE WHEN status = 'within_limits' THEN 'approved' ELSE status END
           FROM transfers_transfer AS transfer
           JOIN approvals_approval ON subject_id = transfer.id AND kind <> 'never_arrived'
           WHERE told_at IS NOT NULL""",
    ),
    Rule(
        "an order that staff ended as never arrived was within the limits or approved",
        """SELECT id, concat_ws(' ', merchant_id, amount) FROM transfers_transfer
           WHERE settled_by <> '' AND state = 'failed'""",
        """SELECT subject_id, concat_ws(' ', coalesce(merchant_id, ''), amount) FROM approvals_approval
           WHERE kind = 'never_arrived' AND status IN ('within_limits', 'approved')""",
    ),
    Rule(
        "nobody is asked whether an order never arrived that is over",
        """SELECT subject_id, 'open' FROM approvals_approval
           WHERE kind = 'never_arrived' AND status = 'waiting'""",
        """SELECT subject_id, CASE WHEN state IN ('queued', 'told') THEN 'open' ELSE state END
           FROM approvals_approval LEFT JOIN transfers_transfer AS transfer ON transfer.id = subject_id
           WHERE kind = 'never_arrived' AND approvals_approval.status = 'waiting'""",
    ),
    Rule(
        "who decides about outgoing money is not who asked for it",
        "SELECT id, 'another' FROM approvals_approval WHERE status IN ('approved', 'rejected')",
        """SELECT id, CASE WHEN decided_by IN ('', requested_by) THEN 'nobody else' ELSE 'another' END
           FROM approvals_approval WHERE status IN ('approved', 'rejected')""",
    ),
]
