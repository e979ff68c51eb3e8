"""The database keeps what was asked and decided, and that nothing goes to a bank before it may."""

from django.db import migrations

GUARD = """
CREATE FUNCTION approvals_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    free text[] := '{status,decided_by,decided_at,why}';
BEGIN
    IF TG_OP IN ('DELETE', 'TRUNCATE') THEN
        RAISE EXCEPTION 'an approval is never deleted' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF TG_OP = 'INSERT' THEN
        IF NEW.status NOT IN ('waiting', 'within_limits') THEN
            RAISE EXCEPTION 'an approval is not born %', NEW.status USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END IF;
    IF OLD.status <> 'waiting' THEN
        RAISE EXCEPTION 'what was decided never changes' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.status NOT IN ('approved', 'rejected', 'canceled') THEN
        RAISE EXCEPTION 'an approval cannot go from waiting to %', NEW.status USING ERRCODE = 'check_violation';
    END IF;
    IF (to_jsonb(NEW) - free) IS DISTINCT FROM (to_jsonb(OLD) - free) THEN
        RAISE EXCEPTION 'what was asked for never changes' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER approvals_guard BEFORE INSERT OR UPDATE OR DELETE ON approvals_approval
    FOR EACH ROW EXECUTE FUNCTION approvals_guard();
CREATE TRIGGER approvals_kept BEFORE TRUNCATE ON approvals_approval
    FOR EACH STATEMENT EXECUTE FUNCTION approvals_guard();

CREATE FUNCTION approvals_guard_transfer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM approvals_approval
            WHERE subject_id = NEW.id AND kind <> 'write_off' AND status NOT IN ('within_limits', 'approved')) THEN
        RAISE EXCEPTION 'an order that nobody approved is not sent' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER approvals_guard_transfer BEFORE UPDATE ON transfers_transfer
    FOR EACH ROW WHEN (NEW.state IN ('queued', 'told') AND NEW.state <> OLD.state)
    EXECUTE FUNCTION approvals_guard_transfer();
"""
UNGUARD = """
DROP TRIGGER approvals_guard_transfer ON transfers_transfer;
DROP FUNCTION approvals_guard_transfer();
DROP TRIGGER approvals_guard ON approvals_approval;
DROP TRIGGER approvals_kept ON approvals_approval;
DROP FUNCTION approvals_guard();
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0001_initial"), ("transfers", "0009_held")]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
