"""The database keeps the state machine of `payments.models.MOVES` and what never changes about a payment."""

from django.db import migrations

GUARD = """
CREATE FUNCTION payments_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'a payment is never deleted' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF TG_OP = 'INSERT' THEN
        IF NEW.status NOT IN ('pending', 'succeeded', 'failed') THEN
            RAISE EXCEPTION 'a payment is not born %', NEW.status USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END IF;
    IF (NEW.id, NEW.merchant_id, NEW.amount, NEW.currency, NEW.created_at)
            IS DISTINCT FROM (OLD.id, OLD.merchant_id, OLD.amount, OLD.currency, OLD.created_at)
       OR NEW.qr_code_id IS DISTINCT FROM OLD.qr_code_id THEN
        RAISE EXCEPTION 'what was asked for never changes' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.status <> OLD.status AND (OLD.status || '>' || NEW.status) NOT IN (
        'pending>succeeded', 'pending>failed', 'pending>expired', 'expired>succeeded', 'succeeded>refunded'
    ) THEN
        RAISE EXCEPTION 'a payment cannot go from % to %', OLD.status, NEW.status USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER payments_guard BEFORE INSERT OR UPDATE OR DELETE ON payments_payment
    FOR EACH ROW EXECUTE FUNCTION payments_guard();
"""
UNGUARD = "DROP TRIGGER payments_guard ON payments_payment; DROP FUNCTION payments_guard();"


class Migration(migrations.Migration):
    dependencies = [("payments", "0001_initial")]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
