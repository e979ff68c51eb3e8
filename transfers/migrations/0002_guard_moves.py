"""The database keeps the state machine of `transfers.models.MOVES` and what never changes about an order."""

from django.db import migrations

GUARD = """
CREATE FUNCTION transfers_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP IN ('DELETE', 'TRUNCATE') THEN
        RAISE EXCEPTION 'a transfer is never deleted' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF TG_OP = 'INSERT' THEN
        IF NEW.state <> 'queued' THEN
            RAISE EXCEPTION 'a transfer is not born %', NEW.state USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END IF;
    IF (NEW.id, NEW.purpose, NEW.route, NEW.amount, NEW.bank_code, NEW.account_name,
            NEW.charge_id, NEW.created_at)
            IS DISTINCT FROM (OLD.id, OLD.purpose, OLD.route, OLD.amount, OLD.bank_code,
            OLD.account_name, OLD.charge_id, OLD.created_at)
       -- `manage.py reseal` seals it with another key
       OR NEW.account_sealed <> OLD.account_sealed AND current_setting('qr.resealing', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'what was ordered never changes' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.state <> OLD.state AND (OLD.state || '>' || NEW.state) NOT IN (
        'queued>told', 'queued>canceled', 'told>succeeded', 'told>failed', 'told>queued', 'succeeded>returned'
    ) THEN
        RAISE EXCEPTION 'a transfer cannot go from % to %', OLD.state, NEW.state USING ERRCODE = 'check_violation';
    END IF;
    -- Whoever asked the bank about an order believes that it may have it.
    IF OLD.state = 'told' AND NEW.state = 'queued' AND OLD.inquiries > 0 THEN
        RAISE EXCEPTION 'an order that was inquired is not sent again' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER transfers_guard BEFORE INSERT OR UPDATE OR DELETE ON transfers_transfer
    FOR EACH ROW EXECUTE FUNCTION transfers_guard();
CREATE TRIGGER transfers_kept BEFORE TRUNCATE ON transfers_transfer
    FOR EACH STATEMENT EXECUTE FUNCTION transfers_guard();
"""
UNGUARD = """
DROP TRIGGER transfers_guard ON transfers_transfer;
DROP TRIGGER transfers_kept ON transfers_transfer;
DROP FUNCTION transfers_guard();
"""


class Migration(migrations.Migration):
    dependencies = [("transfers", "0001_initial")]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
