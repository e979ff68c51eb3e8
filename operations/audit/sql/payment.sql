-- Payments: transactions, list counts, journals, events, bank transactions.

-- define HAS_PAYER
num_nonnulls(payment.payer_name, payment.payer_bank_code, payment.payer_account_sealed,
    payment.bank_reference) > 0

-- define OF_CODE: money matched by the reference of a code; what staff attached has another reference
bank_transaction.payment_id IS NOT NULL AND resolution_state <> 'attached' AND match_result IN {RESULTS_OF_CODES}

-- define EARLIEST: no payment is paid before it was created, whatever the clock of a bank says
payment.created_at - {CLOCK_SKEW}

-- rule: each ended payment, and no other, has its transaction
SELECT concat_ws(' ', id, CASE status WHEN 'failed' THEN 'failed' ELSE 'payment' END),
    concat_ws(' ', status, {RECEIVED_AMOUNT}, currency, merchant_id)
FROM payments_payment AS payment WHERE status IN ('succeeded', 'refunded', 'failed')
-- found
SELECT concat_ws(' ', payment_id, type), concat_ws(' ', status, amount, currency, merchant_id)
FROM transactions_transaction WHERE type <> 'refund'

-- rule: transactions have the time of what they record
SELECT id, created_at::text FROM transactions_transaction
-- found
SELECT transaction.id, coalesce(refund.created_at, event.created_at)::text
FROM transactions_transaction AS transaction
LEFT JOIN refunds_refund AS refund ON refund.id = transaction.refund_id
LEFT JOIN LATERAL (
    SELECT max(created_at) AS created_at FROM webhooks_event
    WHERE subject_id = transaction.payment_id AND webhooks_event.type =
        CASE transaction.type WHEN 'payment' THEN 'payment.succeeded' ELSE 'payment.failed' END
) AS event ON transaction.refund_id IS NULL

-- rule: card payments are paid after their creation and before the acquirer's answer
SELECT id, 'between' FROM payments_payment WHERE qr_code_id IS NULL AND completed_at IS NOT NULL
-- found
-- A charge of the first releases has no time of its own.
SELECT payment.id, CASE
    WHEN payment.completed_at BETWEEN payment.created_at - interval '5 minutes'
        AND charge.completed_at + interval '5 minutes'
        AND payment.completed_at = coalesce(
            CASE WHEN charge.paid_at < {EARLIEST} THEN payment.created_at ELSE charge.paid_at END,
            payment.completed_at)
    THEN 'between' ELSE 'another time'
END
FROM payments_payment AS payment
JOIN payments_cardcharge AS charge ON charge.payment_id = payment.id
WHERE payment.qr_code_id IS NULL AND payment.completed_at IS NOT NULL

-- rule: QR codes show the biller, the reference and the amount by which their payment is found
SELECT qr_code_id, 'its own' FROM payments_payment WHERE qr_code_id IS NOT NULL
-- found
-- Also a code without a payment: no foreign key refuses it.
SELECT coalesce(payment.qr_code_id, code.payment_id), CASE WHEN bool_and(code.merchant_id = payment.merchant_id)
        AND count(*) = count(*) FILTER (WHERE strpos(code.qr_data, concat(
        part.tag, lpad(length(part.value)::text, 2, '0'), part.value)) > 0)
    THEN 'its own' ELSE 'another' END
FROM qrcodes_qrcode AS code LEFT JOIN payments_payment AS payment ON payment.id = code.payment_id,
LATERAL (VALUES ('01', code.biller_id), ('02', code.reference1),
    ('54', (payment.amount / 100.0)::numeric(12, 2)::text)) AS part (tag, value)
GROUP BY code.payment_id, payment.qr_code_id

-- rule: a payment link counts its payments that succeeded
SELECT id, payments::text FROM links_paymentlink
-- found
SELECT link.id, count(payment.id)::text
FROM links_paymentlink AS link LEFT JOIN payments_payment AS payment
    ON payment.payment_link_id = link.id AND payment.status IN ('succeeded', 'refunded')
GROUP BY link.id

-- rule: payments of a link are its merchant's, for an amount that it allows, by a code of its visitors
SELECT id, payment_link_id FROM payments_payment WHERE payment_link_id IS NOT NULL
-- found
SELECT payment.id, link.id
FROM links_linkcode AS code
JOIN links_paymentlink AS link ON link.id = code.link_id
JOIN payments_payment AS payment ON payment.id = code.payment_id AND payment.merchant_id = link.merchant_id
    AND payment.amount BETWEEN coalesce(link.amount, link.amount_min) AND coalesce(link.amount, link.amount_max)

-- rule: bank transactions have the bank, the biller and the reference of the code of their payment
SELECT id, 'its own' FROM reconciliation_banktransaction AS bank_transaction WHERE {OF_CODE}
-- found
SELECT bank_transaction.id, 'its own' FROM reconciliation_banktransaction AS bank_transaction
JOIN qrcodes_qrcode AS code ON code.payment_id = bank_transaction.payment_id
    AND code.bank = bank_transaction.bank AND code.biller_id = bank_transaction.biller_id AND code.reference1 = bank_transaction.reference1
WHERE {OF_CODE} AND kind = CASE match_result WHEN 'declined' THEN 'decline' ELSE 'credit' END

-- rule: each succeeded payment, and no other, has its journal
SELECT concat_ws(' ', paid.id, account_id), satang::text
FROM (
    SELECT payment.id, payment.merchant_id, {RECEIVED_AMOUNT} AS received, coalesce(fee, 0) AS fee,
        coalesce(fee_vat, 0) AS fee_vat,
        coalesce(
            CASE WHEN bank_transaction.match_result = 'applied' THEN 'bank:' || bank_transaction.bank
                WHEN bank_transaction.id IS NOT NULL
                THEN CASE bank_transaction.bank WHEN 'sandbox' THEN 'suspense:sandbox' ELSE 'suspense' END END,
            'acquirer:' || charge.acquirer
        ) AS source, coalesce(bank_transaction.bank, charge.acquirer) AS owner
    FROM payments_payment AS payment
    LEFT JOIN reconciliation_banktransaction AS bank_transaction ON bank_transaction.payment_id = payment.id AND {CREDITED}
    LEFT JOIN payments_cardcharge AS charge ON charge.payment_id = payment.id
    WHERE payment.status IN ('succeeded', 'refunded')
) AS paid, LATERAL (
    VALUES ('merchant:' || paid.merchant_id, paid.received - fee - fee_vat), (paid.source, -paid.received),
        ('fees:' || owner, fee), ('fee_vat:' || owner, fee_vat)
) AS line (account_id, satang) WHERE satang <> 0
-- found
-- Here all money of the merchant is one sum. Other rules check what it can spend.
SELECT concat_ws(' ', journal.subject_id, account), sum(entry.amount)::text
FROM ledger_journal AS journal JOIN ledger_entry AS entry ON entry.journal_id = journal.id,
regexp_replace(entry.account_id, '^(available|debt|unconfirmed|unsettled):', 'merchant:') AS account
WHERE journal.type IN ('payment', 'fee', 'fee_added', 'fee_returned')
    AND NOT starts_with(journal.subject_id, 'ref_') -- the fee of a void comes back for its refund
GROUP BY journal.subject_id, account
HAVING sum(entry.amount) <> 0

-- define OF_PAID_LINE: lines of statements that name a fee, with the payment of their money
FROM reconciliation_statementline AS line
JOIN reconciliation_banktransaction AS bank_transaction ON bank_transaction.id = bank_transaction_id AND {CREDITED}
JOIN payments_payment AS payment ON payment.id = bank_transaction.payment_id
WHERE line.fee IS NOT NULL

-- rule: payments have the fee that the statement of their bank names, and no other changed
-- Unconfirmed money has none yet. A fee of money whose excess went back can be more than the rest.
SELECT concat('line ', line.id), concat_ws(' ', payment.id, line.fee, line.fee_vat) {OF_PAID_LINE}
    AND NOT is_fee_due AND payment.fee IS NOT NULL AND line.fee + line.fee_vat <= {RECEIVED_AMOUNT}
UNION ALL
SELECT concat('journal ', id), 'changed' FROM ledger_journal WHERE type IN ('fee_added', 'fee_returned')
    AND NOT starts_with(subject_id, 'ref_')
-- found
SELECT concat('line ', line.id), concat_ws(' ', payment.id, payment.fee, payment.fee_vat) {OF_PAID_LINE}
    AND NOT is_fee_due AND payment.fee IS NOT NULL AND line.fee + line.fee_vat <= {RECEIVED_AMOUNT}
UNION ALL
SELECT concat('journal ', id), 'changed' FROM ledger_journal WHERE type IN ('fee_added', 'fee_returned')
    AND subject_id IN (SELECT payment.id {OF_PAID_LINE})

-- rule: what an acquirer has not paid is unsettled
SELECT payment.merchant_id, sum(unsettled)::text
FROM payments_cardcharge AS charge JOIN payments_payment AS payment ON payment.id = charge.payment_id
WHERE unsettled > 0 GROUP BY payment.merchant_id
-- found
SELECT split_part(account_id, ':', 2), sum(amount)::text FROM ledger_entry
WHERE starts_with(account_id, 'unsettled:') GROUP BY account_id HAVING sum(amount) <> 0

-- rule: what acquirers owe is on the way, or a question has it
SELECT name, (sum(satang))::text FROM (
    SELECT acquirer AS name, coalesce(fee, 0) + coalesce(fee_vat, 0) - {RECEIVED_AMOUNT} AS satang
    FROM payments_cardcharge AS charge JOIN payments_payment AS payment ON payment.id = charge.payment_id
    WHERE paid_at IS NOT NULL AND settled_at IS NULL
    UNION ALL
    -- Refunds that no transfer has taken off.
    SELECT split_part(route, ':', 2), amount FROM refunds_refund AS refund
    WHERE starts_with(route, 'acquirer:') AND completed_at IS NOT NULL AND NOT EXISTS (
        SELECT FROM settlements_settleditem AS item
        JOIN settlements_acquirertransfer AS transfer ON transfer.id = item.transfer_id
        WHERE item.refund_id = refund.id AND item.kind = 'refund' AND NOT awaits_result AND transfer.state = 'paid'
    )
    UNION ALL
    -- What came for charges and refunds that have no result here, or whose fee is not known.
    SELECT transfer.acquirer, item.net_amount FROM settlements_settleditem AS item
    JOIN settlements_acquirertransfer AS transfer ON transfer.id = item.transfer_id
    WHERE awaits_result AND transfer.state = 'paid'
    UNION ALL
    SELECT question.acquirer, difference FROM settlements_openquestion AS question
    JOIN settlements_acquirertransfer AS transfer ON transfer.id = question.transfer_id
    WHERE NOT is_booked AND failed_transfer_id IS NULL AND transfer.state = 'paid'
        AND kind IN ('fee_differs', 'amount_differs', 'paid_twice', 'unknown_item', 'adjustment')
    UNION ALL
    -- Money of charges that failed here, or had another amount, and that refunds returned.
    SELECT split_part(account_id, ':', 2), entry.amount
    FROM ledger_entry AS entry JOIN ledger_journal AS journal ON journal.id = journal_id
    WHERE starts_with(account_id, 'acquirer:') AND type NOT IN
        ('payment', 'fee', 'refund_paid', 'transfer_received', 'difference_booked')
) AS part GROUP BY name HAVING sum(satang) <> 0
-- found
SELECT split_part(account_id, ':', 2), sum(amount)::text FROM ledger_entry
WHERE account_id ~ '^(acquirer:|(fees|fee_vat):)' AND split_part(account_id, ':', 2) IN (
    SELECT acquirer FROM payments_cardcharge
) AND NOT EXISTS (
    SELECT FROM ledger_journal AS journal JOIN payments_payment AS payment ON payment.id = subject_id
    WHERE journal.id = journal_id AND payment.qr_code_id IS NOT NULL
)
GROUP BY 1 HAVING sum(amount) <> 0

-- rule: a transfer that arrived has its journal, and what it pays is settled
SELECT id, concat_ws(' ', net_amount, (SELECT count(*) FROM settlements_settleditem AS item
    WHERE transfer_id = transfer.id AND settlement_id IS NOT NULL))
FROM settlements_acquirertransfer AS transfer WHERE state = 'paid'
-- found
SELECT subject_id, concat_ws(' ', -sum(entry.amount), (SELECT count(*) FROM settlements_settleditem AS item
    JOIN payments_cardcharge AS charge ON charge.payment_id = item.payment_id
    WHERE transfer_id = subject_id AND settlement_id IS NOT NULL AND settled_at IS NOT NULL))
FROM ledger_journal AS journal JOIN ledger_entry AS entry ON entry.journal_id = journal.id
WHERE type = 'transfer_received' AND starts_with(account_id, 'bank:') GROUP BY subject_id

-- rule: each fee that an acquirer gave back is an item of a transfer that arrived, and as it was taken
SELECT item.refund_id, concat_ws(' ', item.net_amount, payment.fee, payment.fee_vat)
FROM settlements_settleditem AS item JOIN payments_payment AS payment ON payment.id = item.payment_id
JOIN settlements_acquirertransfer AS transfer ON transfer.id = item.transfer_id
WHERE item.kind = 'adjustment' AND item.refund_id IS NOT NULL AND transfer.state = 'paid'
-- found
SELECT subject_id, concat_ws(' ', sum(entry.amount) FILTER (WHERE starts_with(account_id, 'available:')),
    coalesce(-sum(entry.amount) FILTER (WHERE starts_with(account_id, 'fees:')), 0),
    coalesce(-sum(entry.amount) FILTER (WHERE starts_with(account_id, 'fee_vat:')), 0))
FROM ledger_journal AS journal JOIN ledger_entry AS entry ON entry.journal_id = journal.id
WHERE type = 'fee_returned' AND starts_with(subject_id, 'ref_') GROUP BY subject_id

-- rule: money of a failed transfer is what it had listed
SELECT id, difference::text FROM settlements_openquestion WHERE failed_transfer_id IS NOT NULL
-- found
SELECT question.id, sum(item.net_amount)::text FROM settlements_openquestion AS question
JOIN settlements_acquirertransfer AS failed ON failed.id = failed_transfer_id AND failed.state = 'failed'
    AND failed.acquirer = question.acquirer
JOIN settlements_settleditem AS item ON item.transfer_id = failed.id GROUP BY question.id

-- rule: settlements are the sums of their payments
SELECT id, concat_ws(' ', gross_amount, fee, fee_vat, payment_count) FROM settlements_settlement
-- found
SELECT item.settlement_id, concat_ws(' ', sum({RECEIVED_AMOUNT}), sum(coalesce(payment.fee, 0)),
    sum(coalesce(payment.fee_vat, 0)), count(*))
FROM settlements_settleditem AS item JOIN payments_payment AS payment ON payment.id = item.payment_id
WHERE item.settlement_id IS NOT NULL GROUP BY item.settlement_id

-- rule: payments show the settlement that pays them, and no other
SELECT item.payment_id, concat_ws(' ', settlement.id, settlement.merchant_id, settlement.arrived_at)
FROM settlements_settleditem AS item
JOIN settlements_acquirertransfer AS transfer ON transfer.id = item.transfer_id
LEFT JOIN settlements_settlement AS settlement ON settlement.id = item.settlement_id
WHERE item.settlement_id IS NOT NULL AND transfer.state <> 'failed'
-- found
SELECT payment.id, concat_ws(' ', settlement_id, payment.merchant_id, transfer.arrived_at)
FROM payments_payment AS payment
LEFT JOIN settlements_settlement AS settlement ON settlement.id = settlement_id
LEFT JOIN settlements_acquirertransfer AS transfer ON transfer.id = settlement.transfer_id
WHERE settlement_id IS NOT NULL

-- rule: each settlement that arrived has its event
SELECT id, concat('1 to ', merchant_id) FROM settlements_settlement WHERE arrived_at IS NOT NULL
-- found
SELECT subject_id, concat(count(*), ' to ', merchant_id) FROM webhooks_event
WHERE type = 'settlement.arrived' GROUP BY subject_id, merchant_id

-- define FEE_TYPES: journals of fees that are known or changed after the payment
('fee', 'fee_added', 'fee_returned')

-- define IS_AFTER_ZERO: the second event says another fee than the zero of the first
type = 'payment.fee_known' AND count(*) > 1
    AND NOT EXISTS (SELECT FROM ledger_journal WHERE subject_id = payment.id AND type = 'fee')

-- rule: payment events match the payment status
SELECT concat_ws(' ', payment.id, kind), concat('1 to ', payment.merchant_id)
FROM payments_payment AS payment
LEFT JOIN payments_cardcharge AS charge ON charge.payment_id = payment.id
JOIN LATERAL (VALUES
    ('payment.pending', payment.qr_code_id IS NOT NULL OR charge.state = 'pending'),
    ('payment.succeeded', payment.status IN ('succeeded', 'refunded')),
    ('payment.failed', payment.status = 'failed')
) AS event (kind, is_told) ON is_told
UNION ALL
-- A payment whose fee a statement changed may have two.
SELECT concat_ws(' ', subject_id, 'payment.fee_known'),
    concat(count(DISTINCT type = 'fee'), ' to ', payment.merchant_id)
FROM ledger_journal AS journal JOIN payments_payment AS payment ON payment.id = subject_id
WHERE type IN {FEE_TYPES} GROUP BY subject_id, payment.merchant_id
-- found
-- Four events are optional: `payment.failed` of an expired code (see EXPIRY_EVENTS), `payment.pending` of a card
-- payment, `payment.fee_known` of a fee of zero, which has no journal, and `payment.hold_lifted`.
SELECT concat_ws(' ', subject_id, type), concat(count(*) - CASE WHEN {IS_AFTER_ZERO} THEN 1 ELSE 0 END,
    ' to ', event.merchant_id)
FROM webhooks_event AS event
LEFT JOIN payments_payment AS payment ON payment.id = event.subject_id
LEFT JOIN payments_cardcharge AS charge ON charge.payment_id = event.subject_id
WHERE starts_with(event.type, 'payment.') AND NOT starts_with(event.type, 'payment.exception')
GROUP BY subject_id, type, event.merchant_id, payment.id, charge.state
HAVING count(*) > 1 OR event.merchant_id IS DISTINCT FROM payment.merchant_id OR (CASE type
    WHEN 'payment.failed' THEN
        payment.qr_code_id IS NOT NULL AND payment.status IN ('expired', 'succeeded', 'refunded')
    WHEN 'payment.hold_lifted' THEN payment.hold IS NULL AND payment.payer_matches IS NOT NULL
    WHEN 'payment.pending' THEN charge.state = 'completed'
    WHEN 'payment.fee_known' THEN payment.fee = 0
        AND NOT EXISTS (SELECT FROM ledger_journal WHERE subject_id = payment.id AND type IN {FEE_TYPES})
END) IS NOT TRUE

-- rule: each succeeded QR payment has exactly one credited bank transaction
SELECT id, concat_ws(' ', {RECEIVED_AMOUNT}, merchant_id, completed_at)
FROM payments_payment AS payment
WHERE qr_code_id IS NOT NULL AND status IN ('succeeded', 'refunded')
-- found
SELECT coalesce(payment_id, bank_transaction.id), concat_ws(' ', bank_transaction.amount - coalesce((
    SELECT excess.amount FROM reconciliation_excess AS excess WHERE bank_transaction_id = bank_transaction.id
), 0), bank_transaction.merchant_id,
    CASE WHEN bank_transaction.paid_at < {EARLIEST} THEN payment.created_at ELSE bank_transaction.paid_at END)
FROM reconciliation_banktransaction AS bank_transaction
LEFT JOIN payments_payment AS payment ON payment.id = payment_id WHERE {CREDITED}

-- rule: the payer of a payment is that of its bank transaction
SELECT id, 'as reported' FROM payments_payment AS payment WHERE {HAS_PAYER}
-- found
-- What the bank reported later may not be on the payment yet. `contents` compares the account.
SELECT payment.id, CASE
    WHEN bank_transaction.id IS NULL THEN 'not reported'
    WHEN payment.payer_name <> bank_transaction.payer_name THEN 'another name'
    WHEN payment.payer_bank_code <> bank_transaction.payer_bank_code THEN 'another bank'
    WHEN payment.payer_account_sealed <> '' AND bank_transaction.payer_account_sealed = ''
    THEN 'another account'
    WHEN payment.bank_reference
        NOT IN (bank_transaction.bank_reference, bank_transaction.later_bank_reference)
    THEN 'another bank reference'
    ELSE 'as reported'
END
FROM payments_payment AS payment
LEFT JOIN reconciliation_banktransaction AS bank_transaction
    ON bank_transaction.payment_id = payment.id AND {CREDITED}
WHERE {HAS_PAYER}

-- rule: each failed QR payment has a decline
SELECT id, 'declined' FROM payments_payment
WHERE qr_code_id IS NOT NULL AND status = 'failed'
-- found
SELECT DISTINCT payment.id, bank_transaction.match_result
FROM reconciliation_banktransaction AS bank_transaction
JOIN payments_payment AS payment ON payment.id = bank_transaction.payment_id
WHERE bank_transaction.match_result = 'declined' AND payment.status = 'failed'

-- rule: the card payment status matches its charge
SELECT id, CASE status WHEN 'pending' THEN 'open' ELSE 'completed' END
FROM payments_payment WHERE qr_code_id IS NULL
-- found
SELECT payment_id, CASE WHEN state IN ('submitted', 'pending') THEN 'open' ELSE state END
FROM payments_cardcharge

-- rule: the refund totals of payments match their refunds
SELECT payment.id, concat(refunded, ' refunded, ', refunding, ' under way, ',
    CASE WHEN refunded = {RECEIVED_AMOUNT} THEN 'refunded' ELSE 'succeeded' END)
FROM payments_payment AS payment JOIN (
    SELECT payment_id,
        coalesce(sum(amount) FILTER (WHERE status = 'completed'), 0) AS refunded,
        coalesce(sum(amount) FILTER (WHERE status = 'pending'), 0) AS refunding
    FROM refunds_refund WHERE status IN ('completed', 'pending') GROUP BY payment_id
) AS refund ON refund.payment_id = payment.id
-- found
SELECT id, concat(amount_refunded, ' refunded, ', amount_refunding, ' under way, ', status)
FROM payments_payment
WHERE amount_refunded <> 0 OR amount_refunding <> 0 OR status = 'refunded'

-- rule: deliveries have the type of their event, and are for an endpoint of its merchant
SELECT delivery.id, concat_ws(' ', event.type, event.merchant_id, endpoint.merchant_id)
FROM webhooks_delivery AS delivery
LEFT JOIN webhooks_event AS event ON event.id = event_id
LEFT JOIN webhooks_endpoint AS endpoint ON endpoint.id = endpoint_id
WHERE (event.type, endpoint.merchant_id) IS DISTINCT FROM (event_type, event.merchant_id)
-- found
SELECT id, event_type FROM webhooks_delivery WHERE false

-- rule: workers have leases of pending deliveries only
SELECT delivery_id, concat_ws(' ', endpoint_id, 'pending') FROM webhooks_deliverylease
-- found
SELECT delivery.id, concat_ws(' ', delivery.endpoint_id, state) FROM webhooks_delivery AS delivery
JOIN webhooks_deliverylease ON delivery_id = delivery.id

-- rule: each event is once in the feed of its merchant, or waits for its sequence
SELECT event.id, merchant.id FROM webhooks_event AS event
LEFT JOIN merchants_merchant AS merchant ON merchant.id = merchant_id
WHERE merchant_id IS NOT NULL
-- found
SELECT event_id, string_agg(merchant_id, ' ') FROM (
    SELECT unnest(event_ids) AS event_id, merchant_id FROM webhooks_feedblock
    UNION ALL SELECT event_id, merchant_id FROM webhooks_unnumberedevent
) AS placed GROUP BY event_id

-- rule: the sequences of a merchant have no gaps, and each block of them has its last event
SELECT concat_ws(' ', merchant_id, first_sequence), concat_ws(' ',
    1 + coalesce(sum(cardinality(event_ids)) OVER (
        PARTITION BY merchant_id ORDER BY first_sequence ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0), (SELECT max(id) FROM unnest(event_ids) AS id))
FROM webhooks_feedblock
-- found
SELECT concat_ws(' ', merchant_id, first_sequence), concat_ws(' ', first_sequence, last_event_id)
FROM webhooks_feedblock

-- rule: list counts match the rows
WITH minute AS (
    SELECT list, owner_id, kind, at, count(*) AS rows, sum(amount) AS amount
    FROM ({COUNTED_ROWS}) AS listed GROUP BY 1, 2, 3, 4
    UNION ALL SELECT list, owner_id, kind, date_trunc('minute', period, 'UTC'), -delta, -amount
        FROM counts_countdelta WHERE period < {CLOSED}
), listed AS (
    SELECT minute.*, bucket
    FROM minute, unnest(ARRAY['month', 'day', 'hour', 'minute']) AS bucket
    UNION ALL
    SELECT list, mode COLLATE "C", kind, at, rows, amount, bucket
    FROM minute JOIN merchants_merchant AS merchant ON merchant.id = owner_id,
        unnest(ARRAY['month', 'day', 'hour']) AS bucket
)
SELECT concat_ws(' ', list, owner_id, kind, bucket, date_trunc(bucket, at, 'UTC')),
    concat(sum(rows), ' rows, ', sum(amount), ' satang')
FROM listed
GROUP BY list, owner_id, kind, bucket, date_trunc(bucket, at, 'UTC')
HAVING sum(rows) <> 0
-- found
SELECT concat_ws(' ', list, owner_id, kind, bucket, starts_at),
    concat(count, ' rows, ', amount, ' satang')
FROM counts_listcount WHERE count <> 0

-- rule: rows that are not counted yet are in an open period
SELECT concat_ws(' ', list, id), 'open' FROM ({OPEN_ROWS}) AS listed
WHERE (period, owner_id) NOT IN (SELECT period, owner_id FROM counts_openperiod)
    -- It came between the announcement and the closing.
    AND (period, owner_id, list) NOT IN (SELECT period, owner_id, list FROM counts_countdelta)
-- found
SELECT id, 'open' FROM webhooks_event WHERE false
