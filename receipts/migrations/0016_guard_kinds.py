"""A receipt is judged as its kind is, and only a payment has what is applied."""

from django.db import migrations

# A trigger and no constraint: what was judged before stays as it was judged.
GUARD = """
CREATE FUNCTION receipts_guard_outcome() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (CASE NEW.kind
        WHEN 'credit' THEN NEW.outcome IN ('unmatched', 'duplicate', 'amount_mismatch', 'late')
            OR NEW.outcome = 'applied' AND NEW.payment_id IS NOT NULL
        WHEN 'decline' THEN NEW.outcome = 'declined'
        ELSE NEW.outcome IN ('unmatched', 'reversed', 'ordered')
    END) IS NOT TRUE THEN
        RAISE EXCEPTION 'a % is not judged %', NEW.kind, NEW.outcome USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER receipts_guard_outcome BEFORE UPDATE OF outcome ON receipts_receipt
    FOR EACH ROW WHEN (NEW.outcome <> OLD.outcome) EXECUTE FUNCTION receipts_guard_outcome();
"""
UNGUARD = """
DROP TRIGGER receipts_guard_outcome ON receipts_receipt;
DROP FUNCTION receipts_guard_outcome();
"""


class Migration(migrations.Migration):
    dependencies = [("receipts", "0015_losses")]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
