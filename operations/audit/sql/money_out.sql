-- Refunds, withdrawals and their transfers.

-- define REQUESTERS: who requested each withdrawal and refund, and the scope that this needs
(
    SELECT subject_id AS id, actor, 'withdrawals:write' AS scope FROM webhooks_event
    WHERE type = 'withdrawal.pending'
    UNION ALL SELECT id, actor, 'refunds:write' FROM refunds_refund
    UNION ALL SELECT subject_id || ' ' || id, actor, 'exceptions:write' FROM reconciliation_resolution
) AS requested

-- rule: each refund has its transaction
SELECT id, concat_ws(' ', transaction_id, -amount, currency, payment_id, merchant_id,
    CASE status WHEN 'completed' THEN 'succeeded' WHEN 'canceled' THEN 'failed' ELSE status END)
FROM refunds_refund
-- found
SELECT refund_id, concat_ws(' ', id, amount, currency, payment_id, merchant_id, status)
FROM transactions_transaction WHERE type = 'refund'

-- rule: refund journals match the refund status
SELECT concat_ws(' ', refund.id, step.type, account_id), satang::text
FROM refunds_refund AS refund
JOIN LATERAL (VALUES
    ('refund_reserved', true, 'available:' || merchant_id, 'reserved:' || merchant_id),
    ('refund_paid', status = 'completed', 'reserved:' || merchant_id, route),
    ('refund_released', status IN ('failed', 'canceled'),
        'reserved:' || merchant_id, 'available:' || merchant_id),
    ('held', returned_at IS NOT NULL, route, {SUSPENSE_OF_ROUTE})
) AS step (type, is_done, leaves, enters) ON is_done,
LATERAL (VALUES (leaves, -refund.amount), (enters, refund.amount)) AS line (account_id, satang)
WHERE reversal_id IS NULL
UNION ALL
SELECT concat_ws(' ', id, 'settled', account_id), satang::text FROM refunds_refund,
LATERAL (VALUES ('unsettled:' || merchant_id, -from_unsettled), ('available:' || merchant_id, from_unsettled))
    AS line (account_id, satang) WHERE from_unsettled > 0
-- found
-- What the balance lacks of a refund to a card is owed.
SELECT concat_ws(' ', subject_id, journal.type, account), sum(entry.amount)::text
FROM ledger_journal AS journal JOIN ledger_entry AS entry ON entry.journal_id = journal.id,
regexp_replace(account_id, '^debt:', 'available:') AS account
WHERE starts_with(journal.type, 'refund_')
    OR journal.type IN ('held', 'settled') AND starts_with(subject_id, 'ref_')
GROUP BY subject_id, journal.type, account

-- rule: each ended refund has its event
SELECT concat_ws(' ', id, 'refund.' || status), concat('1 to ', merchant_id)
FROM refunds_refund WHERE status IN ('completed', 'failed')
-- found
SELECT concat_ws(' ', subject_id, type), concat(count(*), ' to ', merchant_id)
FROM webhooks_event WHERE starts_with(type, 'refund.')
GROUP BY subject_id, type, merchant_id

-- rule: withdrawal journals match the withdrawal status
SELECT concat_ws(' ', withdrawal.id, step.type, account_id), satang::text
FROM withdrawals_withdrawal AS withdrawal
JOIN LATERAL (VALUES
    ('withdrawal_reserved', true, 'available:' || merchant_id, 'reserved:' || merchant_id),
    ('withdrawal_paid', completed_at IS NOT NULL, 'reserved:' || merchant_id, 'bank:' || bank),
    ('withdrawal_released', status IN ('failed', 'canceled') AND completed_at IS NULL,
        'reserved:' || merchant_id, 'available:' || merchant_id),
    ('withdrawal_returned', status = 'failed' AND completed_at IS NOT NULL,
        'bank:' || bank, 'available:' || merchant_id)
) AS step (type, is_done, leaves, enters) ON is_done,
LATERAL (VALUES (leaves, -amount), (enters, amount)) AS line (account_id, satang)
-- found
{JOURNAL_LINES}
WHERE starts_with(journal.type, 'withdrawal_')

-- rule: withdrawal events match the withdrawal status
SELECT concat_ws(' ', id, kind), concat('1 to ', merchant_id)
FROM withdrawals_withdrawal
JOIN LATERAL (VALUES
    ('withdrawal.pending', true),
    ('withdrawal.processed', status IN ('processing', 'succeeded')
        OR status = 'failed' AND failure_code <> '{REJECTED_BY_STAFF}'),
    ('withdrawal.succeeded', completed_at IS NOT NULL),
    ('withdrawal.failed', status = 'failed')
) AS event (kind, is_expected) ON is_expected
-- found
SELECT concat_ws(' ', subject_id, type), concat(count(*), ' to ', merchant_id)
FROM webhooks_event WHERE starts_with(type, 'withdrawal.')
GROUP BY subject_id, type, merchant_id

-- rule: withdrawals of a night are those that its row counted
SELECT concat_ws(' ', merchant_id, day), amount::text FROM withdrawals_payoutnight WHERE amount > 0
-- found
SELECT concat_ws(' ', merchant_id, payout_night), sum(amount)::text FROM withdrawals_withdrawal
WHERE payout_night IS NOT NULL GROUP BY merchant_id, payout_night

-- rule: API keys have the scopes of what they did
SELECT id, scope FROM {REQUESTERS} WHERE starts_with(actor, 'key:')
-- found
SELECT requested.id, scope FROM {REQUESTERS}
JOIN merchants_apikey AS key ON 'key:' || key.public_id = actor AND scope = ANY(key.scopes)

-- rule: reserved balances equal pending refunds and withdrawals
SELECT merchant_id, sum(amount)::text FROM (
    SELECT merchant_id, amount FROM refunds_refund WHERE status = 'pending'
    UNION ALL
    SELECT merchant_id, amount FROM withdrawals_withdrawal
    WHERE status IN ('pending', 'processing')
) AS under_way GROUP BY merchant_id
-- found
SELECT merchant_id, rolled_up_balance::text FROM ledger_account
WHERE type = 'reserved' AND rolled_up_balance <> 0

-- rule: transfers ended as their history says
SELECT id, 'as recorded' FROM transfers_transfer WHERE completed_at IS NOT NULL
-- found
SELECT id, 'as recorded' FROM transfers_transfer AS transfer
WHERE EXISTS (SELECT FROM transfers_transferevent AS event WHERE transfer_id = transfer.id
        AND event.type = state AND event.created_at = completed_at)
    AND (completed_by = '' OR EXISTS (SELECT FROM transfers_transferevent AS event
        WHERE transfer_id = transfer.id AND event.type IN ('succeeded', 'failed')
            AND event.actor = completed_by))

-- rule: refunds, withdrawals and returns are completed when their transfer succeeds
SELECT id, completed_at::text FROM refunds_refund
WHERE completed_at IS NOT NULL AND reversal_id IS NULL
UNION ALL
SELECT id, completed_at::text FROM withdrawals_withdrawal WHERE completed_at IS NOT NULL
UNION ALL
SELECT id, completed_at::text FROM reconciliation_return
WHERE completed_at IS NOT NULL AND NOT is_manual
-- found
SELECT transfer_id, created_at::text FROM transfers_transferevent WHERE type = 'succeeded'

-- rule: the transfer state matches its refund or withdrawal
SELECT id, concat_ws(' ', 'refund', route, amount, CASE
    WHEN awaiting_approval THEN 'held'
    WHEN failure_code = '{REJECTED_BY_STAFF}' THEN 'canceled'
    WHEN returned_at IS NOT NULL THEN 'returned'
    WHEN status = 'pending' THEN 'open'
    WHEN status = 'completed' THEN 'succeeded'
    ELSE status
END)
FROM refunds_refund WHERE route <> '' AND reversal_id IS NULL
UNION ALL
SELECT id, concat_ws(' ', 'return', route, amount, CASE
    WHEN EXISTS (SELECT FROM approvals_approval AS approval
        WHERE subject_id = reconciliation_return.id AND kind = 'return'
            AND approval.status = 'waiting') THEN 'held'
    WHEN returned_at IS NOT NULL THEN 'returned'
    WHEN status = 'pending' THEN 'open'
    WHEN status = 'completed' THEN 'succeeded'
    ELSE status
END)
FROM reconciliation_return WHERE NOT is_manual
UNION ALL
SELECT id, concat_ws(' ', 'withdrawal', 'bank:' || bank, amount, CASE
    WHEN awaiting_approval THEN 'held'
    WHEN status = 'pending' THEN 'queued'
    WHEN status = 'processing' THEN 'submitted'
    WHEN failure_code = '{REJECTED_BY_STAFF}' THEN 'canceled'
    WHEN failure_code = '{BANK_UNREACHABLE}' THEN 'canceled'
    WHEN status = 'failed' AND completed_at IS NOT NULL THEN 'returned'
    ELSE status
END)
FROM withdrawals_withdrawal
-- found
-- A transfer that did not reach its bank is queued again; its withdrawal stays "processing".
SELECT id, concat_ws(' ', purpose, route, amount, CASE
    WHEN state NOT IN ('queued', 'submitted') THEN state
    WHEN purpose IN ('refund', 'return') THEN 'open'
    WHEN submitted_at IS NULL THEN 'queued'
    ELSE 'submitted'
END)
FROM transfers_transfer
