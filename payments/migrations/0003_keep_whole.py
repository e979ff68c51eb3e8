"""A table of payments is never emptied."""

from django.db import migrations

GUARD = """
CREATE FUNCTION payments_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a payment is never deleted' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER payments_kept BEFORE TRUNCATE ON payments_payment
    FOR EACH STATEMENT EXECUTE FUNCTION payments_kept();
"""
UNGUARD = "DROP TRIGGER payments_kept ON payments_payment; DROP FUNCTION payments_kept();"


class Migration(migrations.Migration):
    dependencies = [("payments", "0002_guard_moves")]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
