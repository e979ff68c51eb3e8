"""The moves of a charge, and the one way in which a payment may go: its acquirer refused to try it."""

from importlib import import_module

from django.db import migrations

BEFORE = import_module("payments.migrations.0002_guard_moves")
NEVER = "RAISE EXCEPTION 'a payment is never deleted' USING ERRCODE = 'insufficient_privilege';"
# A charge goes only when it was refused, so a card payment without one is a payment that was not tried.
UNLESS_REFUSED = f"""
        IF OLD.status = 'pending' AND OLD.qr_code_id IS NULL
           AND NOT EXISTS (SELECT FROM payments_cardcharge WHERE payment_id = OLD.id) THEN
            RETURN OLD;
        END IF;
        {NEVER}"""
FUNCTION = BEFORE.GUARD.partition("CREATE TRIGGER")[0].replace(
    "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
)
GUARD = (
    FUNCTION.replace(NEVER, UNLESS_REFUSED)
    + """
CREATE FUNCTION payments_charge_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.state = 'refused' THEN
            RETURN OLD;
        END IF;
        RAISE EXCEPTION 'a charge is never deleted' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF (NEW.payment_id, NEW.acquirer, NEW.created_at) IS DISTINCT FROM (OLD.payment_id, OLD.acquirer, OLD.created_at)
       OR (OLD.charge_id <> '' AND NEW.charge_id <> OLD.charge_id) THEN
        RAISE EXCEPTION 'what was asked for never changes' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.state <> OLD.state AND (OLD.state || '>' || NEW.state) NOT IN (
        'asked>waiting', 'asked>ended', 'asked>refused', 'waiting>ended'
    ) THEN
        RAISE EXCEPTION 'a charge cannot go from % to %', OLD.state, NEW.state USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER payments_charge_guard BEFORE UPDATE OR DELETE ON payments_cardcharge
    FOR EACH ROW EXECUTE FUNCTION payments_charge_guard();
CREATE TRIGGER payments_charge_kept BEFORE TRUNCATE ON payments_cardcharge
    FOR EACH STATEMENT EXECUTE FUNCTION payments_kept();
"""
)
UNGUARD = f"""
DROP TRIGGER payments_charge_kept ON payments_cardcharge;
DROP TRIGGER payments_charge_guard ON payments_cardcharge;
DROP FUNCTION payments_charge_guard();
{FUNCTION}
"""


class Migration(migrations.Migration):
    dependencies = [("payments", "0004_card_charge")]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
