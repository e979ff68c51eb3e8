"""The usual amount of each merchant, and the warning about an amount that is far from it.

A merchant who sends baht where the API expects satang, or the other way round, is wrong by a factor of 100.
"""

from datetime import datetime, timedelta

from core import money
from core.database import rows
from merchants.models import Merchant
from payments.models import PaymentStatus

HEADER = "Warning-Amount"
FACTOR = 100
# The figure is the median of that many latest payments. A merchant with fewer than the minimum has none.
SAMPLE_SIZE, MIN_PAYMENTS = 500, 20
# Merchants without a payment in this time keep their figure. The task runs more often.
RECENT = timedelta(hours=3)
BATCH = 100
UPDATE = """
WITH batch AS (
    SELECT id FROM merchants_merchant WHERE id > %(after)s ORDER BY id LIMIT %(batch)s
), changed AS (
    UPDATE merchants_merchant AS merchant SET usual_amount = latest.median
    FROM batch CROSS JOIN LATERAL (
        SELECT count(*) AS payments, percentile_disc(0.5) WITHIN GROUP (ORDER BY amount) AS median FROM (
            SELECT one.amount FROM unnest(%(statuses)s::text[]) AS kind (status), LATERAL (
                SELECT amount, created_at, id FROM payments_payment
                WHERE merchant_id = batch.id AND status = kind.status
                ORDER BY created_at DESC, id DESC LIMIT %(sample)s
            ) AS one
            ORDER BY one.created_at DESC, one.id DESC LIMIT %(sample)s
        ) AS newest
    ) AS latest
    WHERE merchant.id = batch.id AND latest.payments >= %(minimum)s
        AND latest.median IS DISTINCT FROM merchant.usual_amount
        AND EXISTS (
            SELECT FROM payments_payment
            WHERE merchant_id = batch.id AND status = ANY(%(statuses)s) AND created_at >= %(since)s
        )
)
SELECT max(id) FROM batch
"""


def update(*, now: datetime, batch: int = BATCH) -> None:
    """Store the usual amount of each merchant with recent payments, `batch` merchants a commit."""
    values = {"batch": batch, "sample": SAMPLE_SIZE, "minimum": MIN_PAYMENTS, "since": now - RECENT}
    values["statuses"] = PaymentStatus.values
    after: str | None = ""
    while after is not None:
        (after,) = rows.run(UPDATE, {**values, "after": after}).fetchone()


def warning_headers(merchant: Merchant, amount: int) -> dict[str, str]:
    """The header for an amount, in satang, that is 100 times the merchant's usual one, or a hundredth."""
    usual = merchant.usual_amount
    if usual is None or (usual < amount * FACTOR and amount < usual * FACTOR):
        return {}
    comparison = "more" if amount > usual else "less"
    shown, expected = money.with_code(amount), money.with_code(usual)
    return {HEADER: f"{amount} satang is {shown}, {FACTOR} times {comparison} than usual ({expected})"}
