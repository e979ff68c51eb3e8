"""The SQL of the peer, which pgbench runs too: as few statements as possible."""

AUTHENTICATE = """
SELECT k.id, k.expires_at, k.revoked_at, m.id AS merchant_id, m.bank, m.biller_id, m.reference2, m.reference3
FROM merchants_apikey k JOIN merchants_merchant m ON m.id = k.merchant_id
WHERE k.digest = $1
"""

LOOK_UP_KEY = """
SELECT fingerprint, status, body_sealed, expires_at
FROM idempotency_idempotencykey WHERE merchant_id = $1 AND key = $2
"""

LISTENERS = """
SELECT id, status, events FROM webhooks_endpoint WHERE merchant_id = $1 AND deleted_at IS NULL
"""

# $1 merchant, $2 idempotency key, $3 fingerprint, $4 answer, $5 created, $6 key expires, $7 payment, $8 code,
# $9 amount, $10 reference, $11 metadata, $12 name, $13 bank, $14 sealed account, $15 expires, $16 biller,
# $17 reference of the code, $18 payload, $19 event, $20 body of the event, $21 deliveries, $22 endpoints,
# $23 states.
CREATE = """
WITH stored AS (
    INSERT INTO idempotency_idempotencykey
        (merchant_id, key, fingerprint, status, body_sealed, created_at, expires_at)
    VALUES ($1::text, $2::text, $3::bytea, 200, $4::bytea, $5::timestamptz, $6::timestamptz)
), paid AS (
    INSERT INTO payments_payment
        (id, merchant_id, qr_code_id, status, amount, currency, reference, metadata, client_name,
         client_bank_name, client_bank_account_sealed, payer_differs, amount_refunded, amount_refunding,
         created_at, updated_at, expires_at)
    VALUES ($7::text, $1, $8::text, 'pending', $9::bigint, 'THB', $10::text, $11::json, $12::text,
         $13::text, $14::text, false, 0, 0, $5, $5, $15::timestamptz)
), coded AS (
    INSERT INTO qrcodes_qrcode (id, merchant_id, payment_id, biller_id, reference1, qr_data, created_at)
    VALUES ($8, $1, $7, $16::text, $17::text, $18::text, $5)
), published AS (
    INSERT INTO webhooks_event (id, merchant_id, type, subject_id, body, actor, request_id, created_at)
    VALUES ($19::text, $1, 'payment.pending', $7, $20::bytea, 'key-of0peer0', left($2, 28), $5)
)
INSERT INTO webhooks_delivery (id, event_id, event_type, endpoint_id, state, manual_number, attempt_count,
    due_at, created_at)
SELECT d.id, $19, 'payment.pending', d.endpoint_id, d.state, 0, 0, $5, $5
FROM unnest($21::text[], $22::text[], $23::text[]) AS d (id, endpoint_id, state)
"""

POLL = """
SELECT id, qr_code_id, status, amount, currency, reference, description, metadata, amount_received,
    amount_refunded, failure_code, created_at, updated_at, completed_at, expires_at, authorize_uri,
    has_exceptions, bank_transaction_id, amount_refunding,
    EXISTS (
        SELECT FROM reconciliation_reconciliationexception e WHERE e.merchant_id = p.merchant_id
            AND p.status IN ('pending', 'expired') AND e.reason = 'unmatched' AND e.amount = p.amount
            AND e.opened_at >= p.created_at - interval '10 minutes'
    ) AS may_have_unmatched_money
FROM payments_payment p WHERE merchant_id = $1 AND id = $2
"""
