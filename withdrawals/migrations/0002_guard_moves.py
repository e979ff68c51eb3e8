"""The database keeps the state machine of `withdrawals.models.MOVES` and what never changes."""

from django.db import migrations

GUARD = """
CREATE FUNCTION withdrawals_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP IN ('DELETE', 'TRUNCATE') THEN
        RAISE EXCEPTION 'a withdrawal is never deleted' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF TG_OP = 'INSERT' THEN
        IF NEW.status <> 'pending' OR NEW.decided_at IS NOT NULL THEN
            RAISE EXCEPTION 'a withdrawal is born pending and undecided' USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END IF;
    IF (NEW.id, NEW.merchant_id, NEW.amount, NEW.currency, NEW.bank, NEW.bank_code,
            NEW.account_last4, NEW.account_name, NEW.reference, NEW.metadata::text, NEW.needs_approval, NEW.created_at)
            IS DISTINCT FROM (OLD.id, OLD.merchant_id, OLD.amount, OLD.currency, OLD.bank, OLD.bank_code,
            OLD.account_last4, OLD.account_name, OLD.reference, OLD.metadata::text,
            OLD.needs_approval, OLD.created_at)
       -- `manage.py reseal` seals it with another key
       OR NEW.account_sealed <> OLD.account_sealed AND current_setting('qr.resealing', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'what was asked for never changes' USING ERRCODE = 'check_violation';
    END IF;
    IF OLD.decided_at IS NOT NULL AND (NEW.decided_at, NEW.decided_by) IS DISTINCT FROM (OLD.decided_at, OLD.decided_by)
       OR OLD.completed_at IS NOT NULL AND NEW.completed_at IS DISTINCT FROM OLD.completed_at THEN
        RAISE EXCEPTION 'what happened stays so' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.decided_at IS NOT NULL AND OLD.decided_at IS NULL AND OLD.status <> 'pending' THEN
        RAISE EXCEPTION 'only what is pending is decided' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.status <> OLD.status AND (OLD.status || '>' || NEW.status) NOT IN (
        'pending>processing', 'pending>canceled', 'pending>failed', 'processing>succeeded', 'processing>failed',
        'succeeded>failed'
    ) THEN
        RAISE EXCEPTION 'a withdrawal cannot go from % to %', OLD.status, NEW.status USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.status = 'failed' AND OLD.status <> 'failed' AND (
        (OLD.status = 'pending') <> (NEW.failure_code = 'rejected_by_staff')
        OR (OLD.status = 'succeeded') <> (NEW.failure_code = 'returned_by_bank')
        OR OLD.status = 'pending' AND (OLD.decided_at IS NOT NULL OR NEW.decided_at IS NULL)
    ) THEN
        RAISE EXCEPTION 'a % withdrawal does not fail like that', OLD.status USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER withdrawals_guard BEFORE INSERT OR UPDATE OR DELETE ON withdrawals_withdrawal
    FOR EACH ROW EXECUTE FUNCTION withdrawals_guard();
CREATE TRIGGER withdrawals_kept BEFORE TRUNCATE ON withdrawals_withdrawal
    FOR EACH STATEMENT EXECUTE FUNCTION withdrawals_guard();
"""
UNGUARD = """
DROP TRIGGER withdrawals_guard ON withdrawals_withdrawal;
DROP TRIGGER withdrawals_kept ON withdrawals_withdrawal;
DROP FUNCTION withdrawals_guard();
"""


class Migration(migrations.Migration):
    dependencies = [("withdrawals", "0001_initial")]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
