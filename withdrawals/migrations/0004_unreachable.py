"""A withdrawal fails because its bank was never reached only if its order can never be sent after that."""

from django.db import migrations

GUARD = """
CREATE FUNCTION withdrawals_guard_unreachable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM transfers_transfer WHERE id = NEW.id AND state = 'canceled') THEN
        RAISE EXCEPTION 'the bank may have the order of %', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER withdrawals_guard_unreachable BEFORE UPDATE OF failure_code ON withdrawals_withdrawal
    FOR EACH ROW WHEN (NEW.failure_code = 'bank_unreachable' AND OLD.failure_code IS DISTINCT FROM NEW.failure_code)
    EXECUTE FUNCTION withdrawals_guard_unreachable();
"""
UNGUARD = """
DROP TRIGGER withdrawals_guard_unreachable ON withdrawals_withdrawal;
DROP FUNCTION withdrawals_guard_unreachable();
"""


class Migration(migrations.Migration):
    dependencies = [("withdrawals", "0003_approvals"), ("transfers", "0007_steps")]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
