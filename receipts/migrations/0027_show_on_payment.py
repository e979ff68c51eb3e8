"""Money that did not fit is shown on its payment: kept by the commit that judges it or decides about it."""

from django.db import migrations

SHOWN = "('duplicate', 'amount_mismatch', 'late')"
# Judging holds the payment's lock already, so that the flag waits for nobody. Money that staff attach elsewhere
# stays an exception of the payment that it named.
SHOW = f"""
CREATE FUNCTION receipts_show_on_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO payments_paymentexception (id, payment_id, reason, amount, status, reported_at)
        VALUES (NEW.id, NEW.payment_id, NEW.outcome, NEW.amount, coalesce(nullif(NEW.resolution, ''), 'open'), NEW.received_at)
        ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status;
    UPDATE payments_payment SET has_exceptions = true
        WHERE id = NEW.payment_id AND NOT has_exceptions AND NEW.resolution <> 'attached';
    RETURN NULL;
END $$;
CREATE TRIGGER receipts_show_on_payment AFTER INSERT OR UPDATE OF outcome, resolution ON receipts_receipt
    FOR EACH ROW
    WHEN (NEW.kind = 'credit' AND NEW.payment_id IS NOT NULL AND NEW.outcome IN {SHOWN})
    EXECUTE FUNCTION receipts_show_on_payment();

INSERT INTO payments_paymentexception (id, payment_id, reason, amount, status, reported_at)
    SELECT receipt.id, coalesce(code.payment_id, receipt.payment_id), outcome, receipt.amount,
        coalesce(nullif(resolution, ''), 'open'), received_at
    FROM receipts_receipt AS receipt
    LEFT JOIN qrcodes_qrcode AS code ON code.reference1 = receipt.reference1
        AND code.biller_id = receipt.biller_id
    WHERE kind = 'credit' AND receipt.payment_id IS NOT NULL AND outcome IN {SHOWN};
UPDATE payments_payment SET has_exceptions = true
    WHERE id IN (SELECT payment_id FROM payments_paymentexception);
"""  # noqa: S608
HIDE = """
DROP TRIGGER receipts_show_on_payment ON receipts_receipt;
DROP FUNCTION receipts_show_on_payment();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("receipts", "0026_contradictions"),
        ("payments", "0011_exceptions"),
        ("qrcodes", "0001_initial"),
    ]
    operations = [
        # All that ever came is looked at, which takes longer than a request may.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.RunSQL(SHOW, HIDE),
    ]
