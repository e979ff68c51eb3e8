"""History is not rewritten: only the status of a row may change, and no row goes."""

from django.db import migrations

GUARD = """
CREATE FUNCTION transactions_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR (to_jsonb(NEW) - 'status') IS DISTINCT FROM (to_jsonb(OLD) - 'status') THEN
        RAISE EXCEPTION 'history is not rewritten' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER transactions_guard BEFORE UPDATE OR DELETE ON transactions_transaction
    FOR EACH ROW EXECUTE FUNCTION transactions_guard();
"""
UNGUARD = "DROP TRIGGER transactions_guard ON transactions_transaction; DROP FUNCTION transactions_guard();"


class Migration(migrations.Migration):
    dependencies = [("transactions", "0001_initial")]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
