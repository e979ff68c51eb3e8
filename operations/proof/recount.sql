-- The facts of `proofs.sql` counted in another way: from the reports of the bank to the payments, and by ranks. It reads all
-- reports and attempts of the merchant's payments.
WITH payment AS (
    SELECT subject_id AS id, min(id) AS event_id, min(created_at) AS found_at FROM webhooks_event
    WHERE merchant_id = %(merchant)s AND type = 'payment.succeeded' GROUP BY subject_id
), credited AS (
    SELECT payment.*, money.id AS money_id, money.paid_at, money.source
    FROM reconciliation_banktransaction AS money JOIN payment ON payment.id = money.payment_id
    WHERE money.merchant_id = %(merchant)s AND money.match_result = 'applied'
        AND NOT (payment.found_at < %(start)s OR payment.found_at >= %(end)s)
), called AS (
    SELECT bank_transaction_id AS id FROM reconciliation_banknotification
    WHERE source = 'callback' AND received_at < %(until)s AND bank_transaction_id IN (SELECT money_id FROM credited)
    UNION SELECT credited.money_id FROM reconciliation_confirmationinquiry AS inquiry
    JOIN credited ON credited.id = inquiry.payment_id
    WHERE inquiry.bank_transaction_id IS NULL AND inquiry.created_at < %(until)s
), lost AS (
    SELECT source, found_at - paid_at AS span, row_number() OVER (ORDER BY found_at - paid_at) AS rank,
        count(*) OVER () AS number
    FROM credited WHERE money_id NOT IN (SELECT id FROM called)
), due AS (
    SELECT credited.id, credited.paid_at, min(attempt.started_at) AS posted_at
    FROM credited JOIN webhooks_delivery AS delivery USING (event_id)
    LEFT JOIN webhooks_deliveryattempt AS attempt
        ON attempt.delivery_id = delivery.id AND attempt.started_at < %(until)s
    WHERE delivery.manual_number = 0
        AND delivery.endpoint_id IN (SELECT id FROM webhooks_endpoint WHERE type = 'webhook')
    GROUP BY credited.id, credited.paid_at
), posted AS (
    SELECT posted_at - paid_at AS span, row_number() OVER (ORDER BY posted_at - paid_at) AS rank,
        count(*) OVER () AS number
    FROM due WHERE posted_at IS NOT NULL
), audited AS (
    SELECT ended_at, differences, row_number() OVER (ORDER BY started_at DESC) AS rank FROM operations_jobrun
    WHERE job = 'audit' AND length(error) = 0 AND ended_at IS NOT NULL AND NOT ended_at > %(closed_at)s
), record AS (
    SELECT number, record.* FROM audit_trail_chainlink JOIN audit_trail_auditrecord AS record ON record.id = record_id
    WHERE number <= %(link)s
), drilled AS (
    SELECT id FROM record WHERE act = 'restore_drilled'
)
SELECT (SELECT count(*) FROM credited), (SELECT count(*) FROM posted),
    (SELECT count(*) FROM due WHERE posted_at IS NULL),
    (SELECT span FROM posted WHERE rank = ceil(number * 0.95)),
    (SELECT count(*) FROM lost WHERE source = 'inquiry'), (SELECT count(*) FROM lost WHERE source = 'statement'),
    (SELECT span FROM lost WHERE rank = ceil(number * 0.5)), (SELECT span FROM lost WHERE rank = number),
    (SELECT ended_at FROM audited WHERE rank = 1), (SELECT differences FROM audited WHERE rank = 1),
    (SELECT max(created_at) FROM record WHERE act = 'restore_drilled' AND id = (SELECT max(id) FROM drilled)),
    (SELECT created_at FROM record WHERE number::text = (
        SELECT object_id FROM record WHERE id = (SELECT max(id) FROM drilled)))
