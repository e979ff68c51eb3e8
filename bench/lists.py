"""The long lists of the API: how the bench writes their rows, and their filters."""

from collections.abc import Mapping
from dataclasses import dataclass, field

# A row `n` is the n-th newest and has an id that ends in `tail`.
ROWS = """
FROM generate_series(%(last)s::bigint - 1, %(first)s::bigint, -1) AS n,
LATERAL (
    SELECT %(run)s || lpad(n::text, 21, '0'), %(newest)s::timestamptz - n * %(step)s::interval
) AS row (tail, at),
"""


@dataclass(frozen=True)
class MeasuredList:
    """A list of the API.

    `write` takes numbers from `ROWS`. `filters` have query parameters by name; a value may name `{tail}`, the
    end of the id of one row, or the `{start}` or the `{end}` of the middle half. `columns` are the SQL of
    parameters that are no columns. `searches` read a bounded number of rows, so their total is no count.
    """

    name: str
    table: str
    write: str
    filters: Mapping[str, Mapping[str, str]]
    columns: Mapping[str, str] = field(default_factory=dict)
    searches: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


MIDDLE = {"start_date": "{start}", "end_date": "{end}"}

TRANSACTIONS = MeasuredList(
    "transactions",
    "transactions_transaction",
    f"""
    INSERT INTO transactions_transaction
        (id, merchant_id, payment_id, refund_id, type, status, amount, currency, created_at)
    SELECT 'txn_' || tail, %(owner)s, 'pay_' || tail, CASE type WHEN 'refund' THEN 'ref_' || tail END,
        type, status, CASE type WHEN 'refund' THEN -150000 ELSE 150000 END, 'THB', at
    {ROWS} LATERAL (
        SELECT CASE WHEN mod(n, 25) IN (0, 12) THEN 'refund' WHEN mod(n, 20) = 1 THEN 'failed'
                 ELSE 'payment' END,
            CASE WHEN mod(n, 500) = 0 THEN 'pending' WHEN mod(n, 25) IN (0, 12) THEN 'succeeded'
                 WHEN mod(n, 20) = 1 THEN 'failed' WHEN mod(n, 50) = 2 THEN 'refunded' ELSE 'succeeded' END
    ) AS kind (type, status)
    """,
    {
        "all": {},
        "most by status": {"status": "succeeded"},
        "few by status": {"status": "pending"},
        "by type": {"type": "refund"},
        "by dates": MIDDLE,
        "by all three": {"type": "payment", "status": "refunded", **MIDDLE},
    },
)
# The instance expires the overdue ones meanwhile. Their number by the clock stays the same.
PAYMENTS = MeasuredList(
    "payments",
    "payments_payment",
    f"""
    INSERT INTO payments_payment
        (id, merchant_id, qr_code_id, status, amount, currency, reference, metadata, bank_reference,
         amount_refunded, amount_refunding, created_at, updated_at, expires_at, completed_at)
    SELECT 'pay_' || tail, %(owner)s, 'qr_' || tail, status, 150000, 'THB', 'order ' || tail,
        json_build_object('table', mod(n, 100)::text), 'SANDBOX' || tail, 0, 0, at, at,
        CASE WHEN mod(n, 500) = 1 THEN at + interval '10 years' ELSE at + interval '15 min' END,
        CASE status WHEN 'succeeded' THEN at END
    {ROWS} LATERAL (
        SELECT CASE WHEN mod(n, 500) < 2 THEN 'pending' WHEN mod(n, 20) = 3 THEN 'failed' ELSE 'succeeded' END
    ) AS kind (status)
    """,
    {
        "all": {},
        "most by status": {"status": "succeeded"},
        "few by status": {"status": "pending"},
        "expired by clock": {"status": "expired"},
        "by dates": MIDDLE,
        "by status and dates": {"status": "failed", **MIDDLE},
        "by reference": {"reference": "order {tail}"},
        "by code": {"qr_code_id": "qr_{tail}"},
    },
    {"status": "CASE WHEN status = 'pending' AND expires_at <= now() THEN 'expired' ELSE status END"},
    searches={
        "by metadata": {"metadata[table]": "7"},
        "by metadata, in vain": {"metadata[table]": "none"},
        "by amount": {"amount": "150000"},
        "by amount, in vain": {"amount": "1"},
        "by the bank's id": {"bank_reference": "SANDBOX{tail}"},
    },
)
EVENTS = MeasuredList(
    "events",
    "webhooks_event",
    f"""
    INSERT INTO webhooks_event (id, merchant_id, type, subject_id, body, created_at)
    SELECT 'evt_' || tail, %(owner)s, type, 'pay_' || tail, convert_to(json_build_object(
            'event', type, 'event_id', 'evt_' || tail, 'data', json_build_object('note', repeat('x', 300)),
            'timestamp', '2026-11-21T03:05:42.310Z')::text, 'UTF8'), at
    {ROWS} LATERAL (
        SELECT CASE WHEN mod(n, 500) = 0 THEN 'refund.completed' WHEN mod(n, 2) = 0 THEN 'payment.succeeded'
            ELSE 'payment.pending' END
    ) AS kind (type)
    """,
    {
        "all": {},
        "most by type": {"event": "payment.pending"},
        "few by type": {"event": "refund.completed"},
        "by dates": MIDDLE,
        "by type and dates": {"event": "payment.succeeded", **MIDDLE},
    },
    {"event": "type"},
)
BALANCE_TRANSACTIONS = MeasuredList(
    "balance/transactions",
    "ledger_balancetransaction",
    f"""
    INSERT INTO ledger_balancetransaction (id, merchant_id, type, amount, source_id, created_at)
    SELECT 'bal_' || tail, %(owner)s, type, 150000, 'pay_' || tail, at
    {ROWS} LATERAL (
        SELECT CASE WHEN mod(n, 500) = 0 THEN 'withdrawal_paid' WHEN mod(n, 20) = 3 THEN 'refund_reserved'
            WHEN mod(n, 20) = 2 THEN 'refund_paid' ELSE 'payment' END
    ) AS kind (type)
    """,
    {
        "all": {},
        "most by type": {"type": "payment"},
        "few by type": {"type": "withdrawal_paid"},
        "by dates": MIDDLE,
        "by type and dates": {"type": "refund_paid", **MIDDLE},
    },
)
LISTS = (TRANSACTIONS, PAYMENTS, EVENTS, BALANCE_TRANSACTIONS)
