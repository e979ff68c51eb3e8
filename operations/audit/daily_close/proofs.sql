-- How the payments of a merchant were reported that were credited from `start` to `end`. Their callbacks and attempts
-- count until `until`. Then the last audit that ran to its end, and the last restore drill that was recorded, with the
-- time that the restored copy had reached at least. Each part reads a range of an index, or a row for a payment.
WITH paid AS MATERIALIZED (
    SELECT money.source, money.paid_at, event.created_at - money.paid_at AS found_after,
        sent.is_due, sent.posted_at, callback.id IS NULL AS is_lost
    FROM webhooks_event AS event
    JOIN reconciliation_banktransaction AS money
        ON money.payment_id = event.subject_id AND money.match_result = 'applied'
    CROSS JOIN LATERAL (
        SELECT count(*) > 0 AS is_due, min(attempt.started_at) AS posted_at
        FROM webhooks_delivery AS delivery
        JOIN webhooks_endpoint AS endpoint ON endpoint.id = delivery.endpoint_id
        LEFT JOIN webhooks_deliveryattempt AS attempt ON attempt.delivery_id = delivery.id
            AND attempt.started_at >= %(since)s AND attempt.started_at < %(until)s
        WHERE delivery.event_id = event.id AND delivery.manual_number = 0 AND endpoint.type = 'webhook'
    ) AS sent
    LEFT JOIN LATERAL (
        (
            SELECT id FROM reconciliation_banknotification
            WHERE bank_transaction_id = money.id AND source = 'callback' AND received_at < %(until)s LIMIT 1
        ) UNION ALL (  -- an unsigned one
            SELECT notification_id FROM reconciliation_confirmationinquiry
            WHERE payment_id = event.subject_id AND notification_id IS NOT NULL AND created_at < %(until)s LIMIT 1
        ) LIMIT 1
    ) AS callback ON true
    WHERE event.merchant_id = %(merchant)s AND event.type = 'payment.succeeded'
        AND event.created_at >= %(start)s AND event.created_at < %(end)s
), audit AS (
    SELECT ended_at, differences FROM operations_jobrun
    WHERE job = 'audit' AND error = '' AND ended_at <= %(closed_at)s ORDER BY started_at DESC LIMIT 1
), drill AS (
    SELECT record.created_at AS drilled_at, reached.created_at AS reached_at
    FROM audit_trail_auditrecord AS record
    JOIN audit_trail_chainlink AS own ON own.record_id = record.id AND own.number <= %(link)s
    JOIN audit_trail_chainlink AS link ON link.number = record.object_id::bigint
    JOIN audit_trail_auditrecord AS reached ON reached.id = link.record_id
    WHERE record.act = 'restore_drilled' ORDER BY record.id DESC LIMIT 1
), counted AS (
    SELECT count(*), count(posted_at) AS posted, count(*) FILTER (WHERE is_due AND posted_at IS NULL) AS not_posted,
        percentile_disc(0.95) WITHIN GROUP (ORDER BY posted_at - paid_at) FILTER (WHERE posted_at IS NOT NULL) AS p95,
        count(*) FILTER (WHERE is_lost AND source = 'inquiry') AS by_inquiry,
        count(*) FILTER (WHERE is_lost AND source = 'statement') AS by_statement,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY found_after) FILTER (WHERE is_lost) AS half,
        max(found_after) FILTER (WHERE is_lost) AS longest
    FROM paid
)
SELECT counted.*, audit.*, drill.* FROM counted LEFT JOIN audit ON true LEFT JOIN drill ON true
