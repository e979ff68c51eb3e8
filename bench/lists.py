"""The long lists of the API: how the bench writes their rows, their filters, and how many rows match."""

from dataclasses import dataclass, field

from bench.bulk import ROWS

PAYMENTS_PATH, QR_CODES_PATH = "/Thai/v1/payments", "/Thai/v1/qr-codes"


@dataclass(frozen=True)
class MeasuredList:
    """A list of the API: how its rows are written, its filters, and the share of rows that match a value.

    `counted` is the condition of a plain count, with the filters as parameters. `kind` is the SQL of the kind
    by which rows are counted. A value of a filter may name `{tail}`, the end of the id of one row.
    `with_rows` is a table, and a statement that writes a row of it for each row of the list. `searches` have
    a path each. They read a bounded number of rows, so their total is no count of the whole list.
    """

    name: str
    table: str
    prefix: str
    kind: str
    write: str
    counted: str
    filters: dict[str, dict[str, str]]
    shares: dict[str, float] = field(default_factory=dict)
    owner: str = "merchant_id"
    path: str = ""
    with_rows: tuple[str, str] | None = None
    searches: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)


TRANSACTIONS = MeasuredList(
    "transactions",
    "transactions_transaction",
    "txn_",
    "type || '/' || status",
    f"""
    INSERT INTO transactions_transaction
        (id, merchant_id, payment_id, refund_id, type, status, amount, currency, created_at)
    SELECT 'txn_' || tail, %(owner)s, 'pay_' || tail, CASE type WHEN 'refund' THEN 'ref_' || tail END,
        type, status, CASE type WHEN 'refund' THEN -150000 ELSE 150000 END, 'THB', at
    {ROWS} LATERAL (
        SELECT CASE WHEN n %% 25 IN (0, 12) THEN 'refund' WHEN n %% 20 = 1 THEN 'failed' ELSE 'payment' END,
            CASE WHEN n %% 500 = 0 THEN 'pending' WHEN n %% 25 IN (0, 12) THEN 'succeeded'
                 WHEN n %% 20 = 1 THEN 'failed' WHEN n %% 50 = 2 THEN 'refunded' ELSE 'succeeded' END
    ) AS kind (type, status)
    """,
    "type = coalesce(%(type)s, type) AND status = coalesce(%(status)s, status)",
    {
        "all": {},
        "most by status": {"status": "succeeded"},
        "few by status": {"status": "pending"},
        "by type": {"type": "refund"},
        "by dates": {"dates": "middle"},
        "by all three": {"type": "payment", "status": "refunded", "dates": "middle"},
    },
    {"succeeded": 0.93, "pending": 0.002, "refund": 0.08, "refunded": 0.02},
)
QR_CODES = (
    "qrcodes_qrcode",
    f"""
    INSERT INTO qrcodes_qrcode
        (id, merchant_id, payment_id, biller_id, reference1, qr_data, created_at, actor, request_id)
    SELECT 'qr_' || tail, %(owner)s, 'pay_' || tail, '099400015804189', left(tail, 6) || right(tail, 14),
        repeat('0', 200), at, '', ''
    {ROWS} (VALUES (1)) AS one
    """,
)
# The instance expires the overdue ones meanwhile. Their number by the clock stays the same.
PAYMENTS = MeasuredList(
    "payments",
    "payments_payment",
    "pay_",
    "status",
    f"""
    INSERT INTO payments_payment
        (id, merchant_id, qr_code_id, status, amount, currency, reference, metadata, bank_transaction_id,
         payer_differs, amount_refunded, amount_refunding, created_at, updated_at, expires_at, completed_at)
    SELECT 'pay_' || tail, %(owner)s, 'qr_' || tail, status, 150000, 'THB', 'order ' || tail,
        json_build_object('table', (n %% 100)::text), 'SANDBOX' || tail, false, 0, 0, at, at,
        CASE WHEN n %% 500 = 1 THEN at + interval '10 years' ELSE at + interval '15 min' END,
        CASE status WHEN 'succeeded' THEN at END
    {ROWS} LATERAL (
        SELECT CASE WHEN n %% 500 < 2 THEN 'pending' WHEN n %% 20 = 3 THEN 'failed' ELSE 'succeeded' END
    ) AS kind (status)
    """,
    """coalesce(%(reference)s, reference) = reference AND coalesce(%(qr_code_id)s, qr_code_id) = qr_code_id
        AND (%(status)s::text IS NULL OR %(status)s::text = CASE
            WHEN status = 'pending' AND expires_at <= now() THEN 'expired' ELSE status END)""",
    {
        "all": {},
        "most by status": {"status": "succeeded"},
        "few by status": {"status": "pending"},
        "expired by clock": {"status": "expired"},
        "by dates": {"dates": "middle"},
        "by status and dates": {"status": "failed", "dates": "middle"},
        "by reference": {"reference": "order {tail}"},
        "by code": {"qr_code_id": "qr_{tail}"},
    },
    {"succeeded": 0.946, "failed": 0.05, "pending": 0.002, "expired": 0.002},
    with_rows=QR_CODES,
    searches={
        "by metadata": (PAYMENTS_PATH, {"metadata[table]": "7"}),
        "by metadata, in vain": (PAYMENTS_PATH, {"metadata[table]": "none"}),
        "by amount": (PAYMENTS_PATH, {"amount": "150000"}),
        "by amount, in vain": (PAYMENTS_PATH, {"amount": "1"}),
        "by the bank's id": (PAYMENTS_PATH, {"bank_transaction_id": "SANDBOX{tail}"}),
        "codes": (QR_CODES_PATH, {}),
        "codes, few by status": (QR_CODES_PATH, {"status": "pending"}),
        "codes by reference": (QR_CODES_PATH, {"reference": "order {tail}"}),
        "codes by metadata": (QR_CODES_PATH, {"metadata[table]": "7"}),
    },
)
EVENTS = MeasuredList(
    "events",
    "webhooks_event",
    "evt_",
    "type",
    f"""
    INSERT INTO webhooks_event (id, merchant_id, type, subject_id, body, created_at)
    SELECT 'evt_' || tail, %(owner)s, type, 'pay_' || tail, convert_to(json_build_object(
            'event', type, 'event_id', 'evt_' || tail, 'data', json_build_object('note', repeat('x', 300)),
            'timestamp', '2026-11-21T03:05:42.310Z')::text, 'UTF8'), at
    {ROWS} LATERAL (
        SELECT CASE WHEN n %% 500 = 0 THEN 'refund.completed' WHEN n %% 2 = 0 THEN 'payment.succeeded'
            ELSE 'payment.pending' END
    ) AS kind (type)
    """,
    "type = coalesce(%(event)s, type)",
    {
        "all": {},
        "most by type": {"event": "payment.pending"},
        "few by type": {"event": "refund.completed"},
        "by dates": {"dates": "middle"},
        "by type and dates": {"event": "payment.succeeded", "dates": "middle"},
    },
    {"payment.pending": 0.5, "payment.succeeded": 0.498, "refund.completed": 0.002},
)
# The events are those of EVENTS. Pending ones are due in ten years.
DELIVERIES = MeasuredList(
    "deliveries",
    "webhooks_delivery",
    "dlv_",
    "event_type || '/' || shown_state",
    f"""
    INSERT INTO webhooks_delivery
        (id, event_id, event_type, endpoint_id, state, manual_number, attempt_count, due_at, created_at,
         finished_at)
    SELECT 'dlv_' || tail, 'evt_' || tail, type, %(owner)s, state, 0, 1,
        CASE state WHEN 'pending' THEN at + interval '10 years' ELSE at END, at,
        CASE WHEN state <> 'pending' THEN at END
    {ROWS} LATERAL (
        SELECT CASE WHEN n %% 500 = 0 THEN 'refund.completed' WHEN n %% 2 = 0 THEN 'payment.succeeded'
                ELSE 'payment.pending' END,
            CASE WHEN n %% 500 = 1 THEN 'pending' WHEN n %% 20 = 3 THEN 'failed' ELSE 'succeeded' END
    ) AS kind (type, state)
    """,
    "event_type = coalesce(%(event)s, event_type) AND shown_state = coalesce(%(state)s, shown_state)",
    {
        "all": {},
        "most by state": {"state": "succeeded"},
        "few by state": {"state": "pending"},
        "most by type": {"event": "payment.pending"},
        "few by type": {"event": "refund.completed"},
        "by dates": {"dates": "middle"},
        "by all three": {"event": "payment.pending", "state": "failed", "dates": "middle"},
    },
    {"succeeded": 0.948, "pending": 0.002, "failed": 0.1, "payment.pending": 0.5, "refund.completed": 0.002},
    owner="endpoint_id",
    path="/Thai/v1/webhooks/{owner}/deliveries",
)
REFUNDS = MeasuredList(
    "refunds",
    "refunds_refund",
    "ref_",
    "status",
    f"""
    INSERT INTO refunds_refund
        (id, merchant_id, payment_id, transaction_id, amount, currency, status, route, awaiting_approval,
         failure_code, cancel_actor, cancel_request_id, created_at, updated_at, completed_at)
    SELECT 'ref_' || tail, %(owner)s, 'pay_' || tail, 'txn_' || tail, 150000, 'THB', status, 'bank:sandbox',
        false, CASE status WHEN 'failed' THEN 'declined' END, '', '', at, at,
        CASE status WHEN 'completed' THEN at END
    {ROWS} LATERAL (
        SELECT CASE WHEN n %% 500 = 0 THEN 'pending' WHEN n %% 20 = 3 THEN 'failed' ELSE 'completed' END
    ) AS kind (status)
    """,
    "status = coalesce(%(status)s, status) AND payment_id = coalesce(%(payment_id)s, payment_id)",
    {
        "all": {},
        "most by status": {"status": "completed"},
        "few by status": {"status": "pending"},
        "by dates": {"dates": "middle"},
        "by status and dates": {"status": "failed", "dates": "middle"},
        "by payment": {"payment_id": "pay_{tail}"},
    },
    {"completed": 0.948, "failed": 0.05, "pending": 0.002},
)
WITHDRAWALS = MeasuredList(
    "withdrawals",
    "withdrawals_withdrawal",
    "wd_",
    "status",
    f"""
    INSERT INTO withdrawals_withdrawal
        (id, merchant_id, status, amount, currency, bank, bank_code, account_sealed, account_last4,
         account_name, reference, failure_code, awaiting_approval, created_at, updated_at, completed_at)
    SELECT 'wd_' || tail, %(owner)s, status, 150000, 'THB', 'sandbox', '014', 'sealed', '4567',
        'Somtam House', 'order ' || tail, CASE status WHEN 'failed' THEN 'declined' END, false, at, at,
        CASE status WHEN 'succeeded' THEN at END
    {ROWS} LATERAL (
        SELECT CASE WHEN n %% 500 = 0 THEN 'processing' WHEN n %% 20 = 3 THEN 'failed' ELSE 'succeeded' END
    ) AS kind (status)
    """,
    "status = coalesce(%(status)s, status) AND reference = coalesce(%(reference)s, reference)",
    {
        "all": {},
        "most by status": {"status": "succeeded"},
        "few by status": {"status": "processing"},
        "by dates": {"dates": "middle"},
        "by status and dates": {"status": "failed", "dates": "middle"},
        "by reference": {"reference": "order {tail}"},
    },
    {"succeeded": 0.948, "failed": 0.05, "processing": 0.002},
)
BALANCE_TRANSACTIONS = MeasuredList(
    "balance",
    "ledger_balancetransaction",
    "bal_",
    "type",
    f"""
    INSERT INTO ledger_balancetransaction (id, merchant_id, type, amount, source_id, created_at)
    SELECT 'bal_' || tail, %(owner)s, type, 150000, 'pay_' || tail, at
    {ROWS} LATERAL (
        SELECT CASE WHEN n %% 500 = 0 THEN 'withdrawal_paid' WHEN n %% 20 = 3 THEN 'refund_reserved'
            WHEN n %% 20 = 2 THEN 'refund_paid' ELSE 'payment' END
    ) AS kind (type)
    """,
    "type = coalesce(%(type)s, type)",
    {
        "all": {},
        "most by type": {"type": "payment"},
        "few by type": {"type": "withdrawal_paid"},
        "by dates": {"dates": "middle"},
        "by type and dates": {"type": "refund_paid", "dates": "middle"},
    },
    {"payment": 0.898, "refund_paid": 0.05, "withdrawal_paid": 0.002},
    path="/Thai/v1/balance/transactions",
)
# Lists that only staff read. Each is a statement with the same parameters.
BANK_TRANSACTIONS = f"""
    INSERT INTO reconciliation_banktransaction
        (id, bank, bank_transaction_id, later_bank_transaction_id, source, kind, biller_id, reference1,
         reference2, reference3, amount, paid_at, payer_name, payer_bank_code, payer_account_sealed,
         slip_reference, is_confirmed, match_result, merchant_id, payment_id, received_at, matched_at,
         resolution_state)
    SELECT 'btx_' || tail, 'sandbox', 'SANDBOX' || tail, '', 'callback', 'credit', '099400015804189',
        'R' || tail, '', '', 150000, at, 'Somchai', '014', '', '', true, match_result, %(merchant)s,
        'pay_' || tail, at, at, ''
    {ROWS} LATERAL (
        SELECT CASE WHEN n %% 10 = 0 THEN 'unmatched' ELSE 'applied' END
    ) AS kind (match_result)
"""
EXCEPTIONS = f"""
    INSERT INTO reconciliation_reconciliationexception
        (id, reason, bank, merchant_id, payment_id, amount, reference1, bank_transaction_id, opened_at,
         search_text)
    SELECT 'btx_' || tail, reason, 'sandbox', %(merchant)s, 'pay_' || tail, 150000 + n, 'R' || tail,
        'SANDBOX' || tail, at, upper(concat_ws(' ', 'btx_' || tail, 'R' || tail, 'SANDBOX' || tail))
    {ROWS} LATERAL (
        SELECT CASE WHEN n %% 100 = 0 THEN 'late' ELSE 'unmatched' END
    ) AS kind (reason)
    WHERE n %% 10 = 0
"""
LISTS = (TRANSACTIONS, PAYMENTS, EVENTS, DELIVERIES, REFUNDS, WITHDRAWALS, BALANCE_TRANSACTIONS)
