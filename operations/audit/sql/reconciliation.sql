-- Held money, reversals, resolutions and exceptions.

-- define IS_CREDITED_TO_MERCHANT: the money of a returned refund is credited to the merchant
EXISTS (SELECT FROM reconciliation_resolution WHERE subject_id = refund.id AND type = 'kept')

-- define IS_RESOLVED: a resolved or reopened bank transaction
(resolution_state NOT IN ('', 'taken_back') OR resolution_state = '' AND kind = 'reversal'
    AND match_result = 'unmatched' AND EXISTS (
        SELECT FROM reconciliation_resolution WHERE subject_id = bank_transaction.id))

-- define UNRESOLVED: statuses of exceptions on payments that have not ended
('open', 'sending_back')

-- define HAS_EXCESS
EXISTS (SELECT FROM reconciliation_excess WHERE bank_transaction_id = bank_transaction.id)

-- define OF_PAYMENT: money confirmed as that of one payment can later be attached to another
resolution.type IN ('accepted', 'attached', 'excess_sent_back', 'kept', 'confirmed')
    AND NOT EXISTS (SELECT FROM reconciliation_resolution AS later WHERE later.type = 'attached'
        AND later.subject_id = resolution.subject_id AND later.id > resolution.id)

-- rule: held money, and nothing else, is posted to suspense
SELECT concat_ws(' ', held.id, 'held', account_id), satang::text
FROM (
    SELECT id, bank, amount FROM reconciliation_banktransaction AS bank_transaction WHERE {HELD}
    UNION ALL
    SELECT made.id, bank_transaction.bank, made.amount
    FROM reconciliation_return AS made JOIN reconciliation_banktransaction AS bank_transaction
        ON bank_transaction.id = bank_transaction_id
    WHERE returned_at IS NOT NULL
) AS held,
LATERAL (VALUES ('bank:' || bank, -amount), ({SUSPENSE_OF_BANK}, amount))
    AS line (account_id, satang)
-- found
{JOURNAL_LINES}
WHERE journal.type = 'held' AND NOT starts_with(subject_id, 'ref_')

-- rule: each posting out of suspense has a resolution
SELECT concat_ws(' ', made.id, 'sent_back', account_id), satang::text
FROM reconciliation_return AS made,
LATERAL (VALUES ({SUSPENSE_OF_ROUTE}, -amount), (route, amount))
    AS line (account_id, satang)
WHERE status = 'completed'
UNION ALL
SELECT concat_ws(' ', refund.id, 'accepted', account_id), satang::text
FROM refunds_refund AS refund,
LATERAL (VALUES ({SUSPENSE_OF_ROUTE}, -amount), ('available:' || merchant_id, amount))
    AS line (account_id, satang)
WHERE {IS_CREDITED_TO_MERCHANT}
-- found
{JOURNAL_LINES}
WHERE journal.type IN ('sent_back', 'accepted')

-- rule: the suspense balance equals the held money
SELECT account_id, sum(satang)::text FROM (
    SELECT {SUSPENSE_OF_BANK} AS account_id, amount AS satang
    FROM reconciliation_banktransaction AS bank_transaction
    WHERE {HELD} AND resolution_state IN ('', 'sending_back')
    UNION ALL
    SELECT {SUSPENSE_OF_BANK}, excess.amount
    FROM reconciliation_excess AS excess JOIN reconciliation_banktransaction AS bank_transaction
        ON bank_transaction.id = bank_transaction_id
    WHERE excess.resolution_state IN ('', 'sending_back')
    UNION ALL
    SELECT {SUSPENSE_OF_ROUTE}, amount FROM refunds_refund AS refund
    WHERE returned_at IS NOT NULL AND NOT {IS_CREDITED_TO_MERCHANT}
) AS waiting GROUP BY account_id HAVING sum(satang) <> 0
-- found
SELECT id, sum(satang)::text FROM (
    SELECT id, rolled_up_balance AS satang FROM ledger_account WHERE type = 'suspense'
    UNION ALL
    SELECT account_id, amount FROM ledger_pendingentry WHERE starts_with(account_id, 'suspense')
) AS part GROUP BY id HAVING sum(satang) <> 0

-- rule: each bank reversal has its journal
SELECT concat_ws(' ', id, 'bank:' || bank), amount::text FROM reconciliation_banktransaction
WHERE kind = 'reversal' AND match_result = 'reversed'
-- found
SELECT concat_ws(' ', journal.subject_id, entry.account_id), entry.amount::text
FROM ledger_journal AS journal
JOIN ledger_entry AS entry ON entry.journal_id = journal.id
WHERE journal.type = 'reversal' AND entry.amount > 0

-- rule: each write-off has a resolution and its journal
SELECT concat_ws(' ', coalesce(ledger_subject_id, bank_transaction.id), step.type, account_id),
    satang::text
FROM reconciliation_banktransaction AS bank_transaction
JOIN reconciliation_resolution AS resolution ON resolution.subject_id = bank_transaction.id
    AND resolution.type = 'written_off'
JOIN LATERAL (VALUES
    ('written_off', true, amount),
    ('recovered', resolution_state <> 'written_off' OR resolution.reopen_count < (
        SELECT max(reopen_count) FROM reconciliation_resolution WHERE subject_id = bank_transaction.id),
        -amount)
) AS step (type, is_done, gone) ON is_done,
LATERAL (VALUES (concat('write_offs', CASE bank WHEN 'sandbox' THEN ':sandbox' END), -gone), ('bank:' || bank, gone)) AS line (account_id, satang)
-- found
{JOURNAL_LINES}
WHERE journal.type IN ('written_off', 'recovered')

-- rule: each merge has a resolution and its journal
SELECT concat_ws(' ', coalesce(ledger_subject_id, bank_transaction.id), step.type, account_id),
    satang::text
FROM reconciliation_banktransaction AS bank_transaction
JOIN reconciliation_resolution AS resolution ON resolution.subject_id = bank_transaction.id
    AND resolution.type = 'merged'
JOIN LATERAL (VALUES
    ('merged', true, amount),
    ('unmerged', resolution_state <> 'merged' OR resolution.reopen_count < (
        SELECT max(reopen_count) FROM reconciliation_resolution WHERE subject_id = bank_transaction.id),
        -amount)
) AS step (type, is_done, gone) ON is_done,
LATERAL (VALUES ({SUSPENSE_OF_BANK}, -gone), ('bank:' || bank, gone))
    AS line (account_id, satang)
-- found
{JOURNAL_LINES}
WHERE journal.type IN ('merged', 'unmerged')

-- rule: money of an undone import left suspense
SELECT concat_ws(' ', id, 'undone', account_id), satang::text FROM reconciliation_banktransaction AS bank_transaction,
LATERAL (VALUES ({SUSPENSE_OF_BANK}, -amount), ('bank:' || bank, amount)) AS line (account_id, satang)
WHERE resolution_state = 'undone'
-- found
{JOURNAL_LINES}
WHERE journal.type = 'undone'

-- rule: money of an acquirer is one of its transfers
SELECT id, amount::text FROM reconciliation_banktransaction WHERE resolution_state = 'acquirer'
-- found
SELECT bank_transaction_id, (-sum(entry.amount))::text
FROM settlements_acquirertransfer AS transfer JOIN ledger_journal AS journal
    ON journal.subject_id = bank_transaction_id AND journal.type = 'transfer_seen'
JOIN ledger_entry AS entry ON entry.journal_id = journal.id AND starts_with(account_id, 'suspense')
WHERE state = 'paid' GROUP BY bank_transaction_id, net_amount HAVING -sum(entry.amount) = net_amount

-- rule: merged bank transactions are probable duplicates
SELECT id, 'merged' FROM reconciliation_banktransaction WHERE resolution_state = 'merged'
-- found
SELECT DISTINCT bank_transaction.id, 'merged'
FROM reconciliation_banktransaction AS bank_transaction
JOIN reconciliation_resolution AS resolution ON resolution.subject_id = bank_transaction.id
    AND resolution.type = 'merged',
LATERAL reconciliation_probable_duplicates(bank_transaction.id) AS same (id)
WHERE resolution_state = 'merged' AND same.id = merged_into_id
    AND resolution.reopen_count = (
        SELECT max(reopen_count) FROM reconciliation_resolution WHERE subject_id = bank_transaction.id)

-- rule: each reversal that we requested has its transfer
SELECT id, amount::text FROM reconciliation_banktransaction WHERE match_result = 'ordered'
-- found
SELECT bank_transaction.id, sum(transfer.amount)::text
FROM reconciliation_banktransaction AS bank_transaction JOIN transfers_transfer AS transfer
    ON route = 'bank:' || bank AND charge_id IN (bank_transaction.bank_reference, later_bank_reference)
WHERE match_result = 'ordered' AND charge_id <> '' AND state = 'succeeded'
GROUP BY bank_transaction.id

-- rule: each reversal of a payment is charged to its merchant
SELECT reversal_id, concat_ws(' ', payment_id, route, amount) FROM refunds_refundreversal
-- found
SELECT bank_transaction.id, concat_ws(' ', payment_id, 'bank:' || bank, -sum(entry.amount))
FROM reconciliation_banktransaction AS bank_transaction
JOIN ledger_journal AS journal ON journal.type = 'reversal' AND subject_id = bank_transaction.id
JOIN ledger_entry AS entry ON entry.journal_id = journal.id
JOIN ledger_account AS account ON account.id = entry.account_id
WHERE bank_transaction.match_result = 'reversed' AND account.type IN ('available', 'debt', 'unconfirmed')
GROUP BY bank_transaction.id

-- rule: refunds created by reversals match them
SELECT concat_ws(' ', reversal_id, payment_id, route), refunded_amount::text
FROM refunds_refundreversal WHERE refunded_amount > 0
-- found
SELECT concat_ws(' ', reversal_id, payment_id, route), sum(amount)::text
FROM refunds_refund WHERE reversal_id IS NOT NULL GROUP BY reversal_id, payment_id, route

-- rule: reversed money without a refund exceeds the refundable amount
SELECT payment_id, 'full' FROM refunds_refundreversal WHERE refunded_amount < amount
-- found
SELECT payment.id, 'full'
FROM refunds_refundreversal AS reversal JOIN payments_payment AS payment ON payment.id = payment_id
WHERE refunded_amount < reversal.amount
    AND amount_refunded + amount_refunding = coalesce(amount_received, payment.amount)

-- rule: the resolution state of bank transactions matches their return
SELECT id, concat_ws(' ', resolution_state, amount) FROM (
    SELECT id, resolution_state, amount FROM reconciliation_banktransaction
    UNION ALL SELECT bank_transaction_id, resolution_state, amount FROM reconciliation_excess
) AS held WHERE resolution_state IN ('sending_back', 'sent_back')
-- found
SELECT bank_transaction_id,
    concat_ws(' ', CASE status WHEN 'pending' THEN 'sending_back' ELSE 'sent_back' END, amount)
FROM reconciliation_return
WHERE status = 'pending' OR status = 'completed' AND returned_at IS NULL

-- rule: each bank transaction has the message or the line that reported it
SELECT id, CASE resolution_state WHEN 'undone' THEN NULL ELSE source END FROM reconciliation_banktransaction
-- found
SELECT id, CASE WHEN source = 'statement'
    THEN (SELECT 'statement' FROM reconciliation_statementline WHERE bank_transaction_id = bank_transaction.id)
    ELSE (SELECT min(source) FROM reconciliation_banknotification
        WHERE bank_transaction_id = bank_transaction.id AND result = 'new')
END
FROM reconciliation_banktransaction AS bank_transaction

-- rule: each message of a bank is kept
-- The rule before is that of messages that made a credit.
SELECT notification_id, 'kept' FROM reconciliation_notificationid
-- found
SELECT message.id, 'kept' FROM reconciliation_banknotification AS message
LEFT JOIN reconciliation_banktransaction AS made ON made.id = bank_transaction_id
WHERE result <> 'new' OR made.kind IS DISTINCT FROM 'credit'

-- rule: each statement has the lines that were stored
SELECT id, (stored_count - duplicate_count)::text FROM reconciliation_statement
WHERE stored_count > duplicate_count AND undone_at IS NULL
-- found
SELECT statement_id, count(*)::text FROM reconciliation_statementline GROUP BY statement_id

-- rule: statement lines are those of their bank transaction
SELECT id::text, 'its own' FROM reconciliation_statementline WHERE bank_transaction_id IS NOT NULL
-- found
SELECT line.id::text, 'its own' FROM reconciliation_statementline AS line
JOIN reconciliation_banktransaction AS bank_transaction ON bank_transaction.id = bank_transaction_id
    AND (line.bank, line.biller_id, line.kind, line.reference1, line.amount)
        = (bank_transaction.bank, bank_transaction.biller_id, bank_transaction.kind, bank_transaction.reference1, bank_transaction.amount)
    AND (line.result <> 'new' OR line.paid_at = bank_transaction.paid_at)

-- rule: decisions about exceptions are those of the audit trail
SELECT id::text, actor FROM reconciliation_resolution
WHERE NOT starts_with(actor, 'policy:')
-- found
SELECT id::text, actor FROM reconciliation_resolution AS resolution
WHERE NOT starts_with(actor, 'policy:') AND EXISTS (SELECT FROM audit_trail_auditrecord AS record
    WHERE record.object_id = resolution.subject_id AND record.actor = resolution.actor
        AND record.act = 'exception_resolved'
        AND (record.after ->> 'decision', resolution.type) IN (
            (resolution.type, resolution.type), ('attached', 'accepted'))
        AND record.reason = btrim(resolution.note)
    UNION ALL SELECT FROM reconciliation_statement AS statement JOIN audit_trail_auditrecord AS record
        ON record.object_id = statement.id AND record.act = 'statement_undone'
    WHERE undone_at = resolution.created_at AND resolution.type IN ('undone', 'dismissed')
        AND (record.actor, record.reason) = (resolution.actor, btrim(resolution.note)))

-- rule: resolutions name the payment of their bank transaction
-- Before or after other decisions a bank transaction may belong to another payment.
SELECT id::text, payment_id FROM reconciliation_resolution AS resolution WHERE {OF_PAYMENT}
-- found
SELECT resolution.id::text, coalesce(bank_transaction.payment_id, refund.payment_id)
FROM reconciliation_resolution AS resolution
LEFT JOIN reconciliation_banktransaction AS bank_transaction ON bank_transaction.id = subject_id
LEFT JOIN refunds_refund AS refund ON refund.id = subject_id
WHERE {OF_PAYMENT}

-- rule: statements are those that the audit trail says
SELECT DISTINCT object_id, concat_ws(' ', actor, after ->> 'file_sha256',
    nullif(after ->> 'line_count', '0'))
FROM audit_trail_auditrecord WHERE act = 'statement_imported'
UNION ALL SELECT concat(object_id, ' undone'), 'undone' FROM audit_trail_auditrecord WHERE act = 'statement_undone'
-- found
SELECT id, concat_ws(' ', actor, file_sha256, nullif(line_count, 0))
FROM reconciliation_statement
UNION ALL SELECT concat(id, ' undone'), 'undone' FROM reconciliation_statement WHERE undone_at IS NOT NULL

-- rule: each resolved bank transaction has its resolution
-- Decisions about the excess may follow the one that made it.
SELECT id, CASE WHEN {HAS_EXCESS} THEN 'excess_sent_back' ELSE
    CASE resolution_state WHEN 'sending_back' THEN 'sent_back'
    WHEN '' THEN 'reopened' ELSE resolution_state END END
FROM reconciliation_banktransaction AS bank_transaction WHERE {IS_RESOLVED}
-- found
SELECT DISTINCT ON (subject_id) subject_id,
    CASE type WHEN 'sent_back_by_hand' THEN 'sent_back' ELSE type END
FROM reconciliation_resolution JOIN reconciliation_banktransaction AS bank_transaction
    ON bank_transaction.id = subject_id
WHERE {IS_RESOLVED} AND type <> 'confirmed' AND NOT ({HAS_EXCESS} AND type <> 'excess_sent_back')
ORDER BY subject_id, reconciliation_resolution.id DESC

-- rule: money reported only by a statement, and nothing else, is unconfirmed
SELECT 'unconfirmed:' || merchant_id, sum(bank_transaction.amount - coalesce(reversal.amount, 0))::text
FROM reconciliation_banktransaction AS bank_transaction
LEFT JOIN refunds_refundreversal AS reversal ON reversal.payment_id = bank_transaction.payment_id
WHERE {CREDITED} AND NOT is_confirmed GROUP BY merchant_id
HAVING sum(bank_transaction.amount - coalesce(reversal.amount, 0)) <> 0
-- found
SELECT id, sum(satang)::text FROM (
    SELECT id, rolled_up_balance AS satang FROM ledger_account WHERE type = 'unconfirmed'
    UNION ALL
    SELECT account_id, amount FROM ledger_pendingentry
    WHERE starts_with(account_id, 'unconfirmed:')
) AS part GROUP BY id HAVING sum(satang) <> 0

-- rule: statement money is confirmed by its bank or by another person than the uploader
SELECT id, 'confirmed' FROM reconciliation_banktransaction
WHERE source = 'statement' AND kind = 'credit' AND is_confirmed
-- found
SELECT bank_transaction.id, 'confirmed' FROM reconciliation_banktransaction AS bank_transaction
WHERE source = 'statement' AND kind = 'credit' AND is_confirmed AND (
    EXISTS (SELECT FROM reconciliation_banknotification WHERE bank_transaction_id = bank_transaction.id
        AND source IN ('callback', 'inquiry') AND result IN ('new', 'repeat'))
    OR EXISTS (SELECT FROM reconciliation_resolution
        WHERE subject_id = bank_transaction.id AND type = 'confirmed' AND actor <> ALL (
            SELECT statement.actor FROM reconciliation_statementline AS line
            JOIN reconciliation_statement AS statement ON statement.id = line.statement_id
            WHERE line.bank_transaction_id = bank_transaction.id))
)

-- rule: transfers recorded as returned are returned
SELECT resolution.subject_id, 'returned'
FROM reconciliation_resolution AS resolution WHERE type = 'booked_returned'
-- found
SELECT contradiction.id, transfer.state
FROM transfers_transfercontradiction AS contradiction
JOIN reconciliation_resolution AS resolution ON resolution.subject_id = contradiction.id
    AND type = 'booked_returned'
JOIN transfers_transfer AS transfer ON transfer.id = contradiction.subject_id

-- rule: card payments recorded as failed have failed
SELECT resolution.subject_id, 'failed'
FROM reconciliation_resolution AS resolution WHERE type = 'booked_failed'
-- found
SELECT contradiction.id, payment.status
FROM transfers_transfercontradiction AS contradiction
JOIN reconciliation_resolution AS resolution ON resolution.subject_id = contradiction.id
    AND type = 'booked_failed'
JOIN payments_payment AS payment ON payment.id = contradiction.subject_id

-- rule: exception events match the payment exceptions
-- Late money that the merchant's policy accepts never waits. A resolved exception can be open again.
SELECT concat_ws(' ', exception.id, event.type), 'to ' || payment.merchant_id
FROM payments_paymentexception AS exception
JOIN payments_payment AS payment ON payment.id = exception.payment_id
JOIN LATERAL (VALUES
    ('payment.exception', NOT EXISTS (SELECT FROM reconciliation_resolution AS resolution
        WHERE resolution.subject_id = exception.id AND starts_with(actor, 'policy:'))),
    ('payment.exception_resolved', exception.status NOT IN {UNRESOLVED})
) AS event (type, is_expected) ON is_expected
-- found
SELECT DISTINCT concat_ws(' ', subject_id, type), 'to ' || event.merchant_id
FROM webhooks_event AS event
LEFT JOIN payments_paymentexception AS exception ON exception.id = event.subject_id
WHERE type = 'payment.exception' OR type = 'payment.exception_resolved'
    AND exception.status IN {UNRESOLVED} IS NOT TRUE

-- rule: money that waits for staff, and no other, is on the list of exceptions
SELECT id, 'listed' FROM reconciliation_banktransaction AS bank_transaction
WHERE ({HELD} OR kind = 'reversal' AND match_result = 'unmatched') AND resolution_state = ''
UNION ALL SELECT bank_transaction_id, 'listed' FROM reconciliation_excess WHERE resolution_state = ''
UNION ALL SELECT id, 'listed' FROM refunds_refund AS refund
WHERE returned_at IS NOT NULL AND NOT {IS_CREDITED_TO_MERCHANT}
-- found
SELECT id, 'listed' FROM reconciliation_reconciliationexception
WHERE starts_with(id, 'btx_') OR starts_with(id, 'ref_')
