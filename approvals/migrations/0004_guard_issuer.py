"""Whoever issued an API key does not decide about what the key asked for."""

from django.db import migrations

GUARD = """
CREATE FUNCTION approvals_guard_issuer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM merchants_apikey
            WHERE public_id = substr(NEW.requested_by, 5) AND issued_by = NEW.decided_by) THEN
        RAISE EXCEPTION 'whoever issued the key does not decide' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER approvals_guard_issuer BEFORE UPDATE ON approvals_approval
    FOR EACH ROW WHEN (NEW.status IN ('approved', 'rejected') AND starts_with(NEW.requested_by, 'key:'))
    EXECUTE FUNCTION approvals_guard_issuer();
"""
UNGUARD = """
DROP TRIGGER approvals_guard_issuer ON approvals_approval;
DROP FUNCTION approvals_guard_issuer();
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0003_payout_accounts"), ("merchants", "0004_key_scopes")]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
