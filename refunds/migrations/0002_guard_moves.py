"""The database keeps the state machine of `refunds.models.MOVES` and what never changes about a refund."""

from django.db import migrations

# json has no equality, so metadata is compared as its text. A payment never changes its merchant, so once at
# the insertion is often enough to look whose it is.
GUARD = """
CREATE FUNCTION refunds_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP IN ('DELETE', 'TRUNCATE') THEN
        RAISE EXCEPTION 'a refund is never deleted' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF TG_OP = 'INSERT' THEN
        IF NEW.status <> 'pending' THEN
            RAISE EXCEPTION 'a refund is not born %', NEW.status USING ERRCODE = 'check_violation';
        END IF;
        IF NOT EXISTS (SELECT FROM payments_payment WHERE id = NEW.payment_id AND merchant_id = NEW.merchant_id) THEN
            RAISE EXCEPTION 'the payment is not this merchant''s' USING ERRCODE = 'foreign_key_violation';
        END IF;
        IF NOT EXISTS (SELECT FROM transactions_transaction WHERE id = NEW.transaction_id AND refund_id = NEW.id
                AND payment_id = NEW.payment_id AND merchant_id = NEW.merchant_id AND amount = -NEW.amount) THEN
            RAISE EXCEPTION 'the history tells of another refund' USING ERRCODE = 'foreign_key_violation';
        END IF;
        RETURN NEW;
    END IF;
    IF (NEW.id, NEW.merchant_id, NEW.payment_id, NEW.transaction_id, NEW.amount, NEW.currency, NEW.reason, NEW.note,
            NEW.metadata::text, NEW.created_at)
            IS DISTINCT FROM (OLD.id, OLD.merchant_id, OLD.payment_id, OLD.transaction_id, OLD.amount, OLD.currency,
            OLD.reason, OLD.note, OLD.metadata::text, OLD.created_at) THEN
        RAISE EXCEPTION 'what was asked for never changes' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.route <> OLD.route AND (OLD.route <> '' OR OLD.status <> 'pending') THEN
        RAISE EXCEPTION 'a refund does not change its way' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.status <> OLD.status AND (OLD.status || '>' || NEW.status) NOT IN (
        'pending>completed', 'pending>failed', 'pending>canceled'
    ) THEN
        RAISE EXCEPTION 'a refund cannot go from % to %', OLD.status, NEW.status USING ERRCODE = 'check_violation';
    END IF;
    IF OLD.status <> 'pending' AND (NEW.completed_at, NEW.failure_code)
            IS DISTINCT FROM (OLD.completed_at, OLD.failure_code)
       OR OLD.returned_at IS NOT NULL AND NEW.returned_at IS DISTINCT FROM OLD.returned_at THEN
        RAISE EXCEPTION 'how a refund ended never changes' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refunds_guard BEFORE INSERT OR UPDATE OR DELETE ON refunds_refund
    FOR EACH ROW EXECUTE FUNCTION refunds_guard();
CREATE TRIGGER refunds_kept BEFORE TRUNCATE ON refunds_refund
    FOR EACH STATEMENT EXECUTE FUNCTION refunds_guard();
"""
UNGUARD = """
DROP TRIGGER refunds_guard ON refunds_refund;
DROP TRIGGER refunds_kept ON refunds_refund;
DROP FUNCTION refunds_guard();
"""


class Migration(migrations.Migration):
    dependencies = [("refunds", "0001_initial")]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
