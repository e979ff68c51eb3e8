-- Approvals: no outgoing money leaves without the approval that it needs.

-- define APPROVAL_STATE: the state of an approval by the columns of its refund or withdrawal
CASE WHEN awaiting_approval THEN 'waiting' WHEN failure_code = '{REJECTED_BY_STAFF}' THEN 'rejected'
    ELSE 'free' END

-- rule: withdrawal status matches its approval
SELECT id, concat_ws(' ', merchant_id, amount, bank_code, account_last4, {APPROVAL_STATE})
FROM withdrawals_withdrawal
-- found
SELECT subject_id, concat_ws(' ', merchant_id, amount, bank_code, account_last4,
    CASE WHEN status IN ('waiting', 'rejected') THEN status ELSE 'free' END)
FROM approvals_approval WHERE kind = 'withdrawal'

-- rule: refund status matches its approval
SELECT refund.id, concat_ws(' ', refund.merchant_id, refund.amount, {APPROVAL_STATE})
FROM refunds_refund AS refund
LEFT JOIN approvals_approval AS approval ON approval.subject_id = refund.id AND kind = 'refund'
WHERE approval.id IS NOT NULL OR awaiting_approval
    OR failure_code = '{REJECTED_BY_STAFF}'
-- found
SELECT subject_id, concat_ws(' ', merchant_id, amount,
    CASE WHEN status IN ('waiting', 'rejected') THEN status ELSE 'free' END)
FROM approvals_approval WHERE kind = 'refund'

-- rule: return status matches its approval
SELECT made.id, concat_ws(' ', made.amount, CASE
    WHEN is_manual AND made.status = 'pending' OR state = 'held' THEN 'waiting'
    WHEN made.status = 'canceled' AND approval.status IN ('rejected', 'canceled') THEN 'canceled'
    ELSE 'free'
END)
FROM reconciliation_return AS made
LEFT JOIN approvals_approval AS approval
    ON approval.subject_id = made.id AND kind IN ('return', 'return_by_hand')
LEFT JOIN transfers_transfer AS transfer ON transfer.id = made.id
WHERE is_manual OR approval.id IS NOT NULL
-- found
SELECT subject_id, concat_ws(' ', amount, CASE status
    WHEN 'waiting' THEN status WHEN 'rejected' THEN 'canceled' WHEN 'canceled' THEN status
    ELSE 'free'
END)
FROM approvals_approval WHERE kind IN ('return', 'return_by_hand')

-- rule: write-offs are within the limits or approved
SELECT subject_id, count(*)::text FROM reconciliation_resolution
WHERE type = 'written_off' GROUP BY subject_id
-- found
SELECT subject_id, count(*)::text FROM approvals_approval
WHERE kind = 'write_off' AND status IN ('within_limits', 'approved') GROUP BY subject_id

-- rule: transfers are held while their approval is pending
SELECT id, 'held' FROM transfers_transfer WHERE state = 'held'
-- found
SELECT subject_id, 'held' FROM approvals_approval
WHERE status = 'waiting' AND kind IN ('withdrawal', 'refund', 'return')

-- rule: no transfer is submitted without approval
SELECT transfer.id, 'approved' FROM transfers_transfer AS transfer
JOIN approvals_approval ON subject_id = transfer.id AND kind <> 'never_arrived'
WHERE submitted_at IS NOT NULL
-- found
SELECT transfer.id, CASE WHEN status = 'within_limits' THEN 'approved' ELSE status END
FROM transfers_transfer AS transfer
JOIN approvals_approval ON subject_id = transfer.id AND kind <> 'never_arrived'
WHERE submitted_at IS NOT NULL

-- rule: transfers go to the account that was asked for and approved
SELECT id, 'the same' FROM transfers_transfer
-- found
-- The digest covers bank, account and holder. `contents` compares it with them.
SELECT transfer.id, CASE
    WHEN coalesce(withdrawal.merchant_id, refund.merchant_id, approval.merchant_id)
        <> transfer.merchant_id THEN 'another merchant asked for it'
    WHEN withdrawal.bank_reference <> transfer.bank_reference
        THEN 'the withdrawal has another reference of the bank'
    WHEN coalesce(withdrawal.account_digest, refund.account_digest, made.account_digest)
        <> transfer.account_digest THEN 'another account was asked for'
    WHEN (withdrawal.bank_code, withdrawal.account_name)
        <> (transfer.bank_code, transfer.account_name) THEN 'another bank or holder was asked for'
    WHEN approval.account_digest <> transfer.account_digest
        OR approval.bank_code <> transfer.bank_code
        OR transfer.account_name <> '' AND approval.account_name <> transfer.account_name
        THEN 'another account was approved'
    ELSE 'the same'
END
FROM transfers_transfer AS transfer
LEFT JOIN withdrawals_withdrawal AS withdrawal ON withdrawal.id = transfer.id
LEFT JOIN refunds_refund AS refund ON refund.id = transfer.id
LEFT JOIN reconciliation_return AS made ON made.id = transfer.id
LEFT JOIN approvals_approval AS approval
    ON approval.subject_id = transfer.id AND kind IN ('withdrawal', 'refund', 'return')

-- rule: transfers recorded as never arrived are within the limits or approved
SELECT id, concat_ws(' ', merchant_id, amount) FROM transfers_transfer
WHERE completed_by <> '' AND state = 'failed'
-- found
SELECT subject_id, concat_ws(' ', coalesce(merchant_id, ''), amount) FROM approvals_approval
WHERE kind = 'never_arrived' AND status IN ('within_limits', 'approved')

-- rule: no approval is pending for a transfer that has ended
SELECT subject_id, 'open' FROM approvals_approval
WHERE kind = 'never_arrived' AND status = 'waiting'
-- found
SELECT subject_id, CASE WHEN state IN ('queued', 'submitted') THEN 'open' ELSE state END
FROM approvals_approval LEFT JOIN transfers_transfer AS transfer ON transfer.id = subject_id
WHERE kind = 'never_arrived' AND approvals_approval.status = 'waiting'

-- rule: approvals are decided as the audit trail says
-- Notes can have names, so only their digests are shown.
SELECT object_id, concat_ws(' ', act, actor, (after ->> 'decided_at')::timestamptz, md5(reason))
FROM audit_trail_auditrecord
WHERE object_type = 'approvals.approval' AND act IN ('approved', 'rejected')
-- found
SELECT id, concat_ws(' ', status, decided_by, decided_at, md5(btrim(decision_note)))
FROM approvals_approval WHERE status IN ('approved', 'rejected')

-- rule: approvals are requested with their transfer, by the same actor
SELECT approval.id, concat_ws(' ', requested_by, request_id, requested_at)
FROM approvals_approval AS approval WHERE kind IN ('withdrawal', 'refund', 'return')
-- found
SELECT approval.id, concat_ws(' ', event.actor, event.request_id, event.created_at)
FROM approvals_approval AS approval JOIN (
    SELECT DISTINCT ON (transfer_id) * FROM transfers_transferevent ORDER BY transfer_id, id
) AS event ON event.transfer_id = subject_id
WHERE kind IN ('withdrawal', 'refund', 'return')

-- rule: approvals are decided by another person than the requester
SELECT id, 'another' FROM approvals_approval WHERE status IN ('approved', 'rejected')
-- found
SELECT id, CASE WHEN decided_by IN ('', requested_by) THEN 'nobody else' ELSE 'another' END
FROM approvals_approval WHERE status IN ('approved', 'rejected')
