"""A bank's word is kept as it was said: notices never change, of a receipt only what we made of it."""

from django.db import migrations

GUARD = """
CREATE FUNCTION receipts_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR TG_TABLE_NAME = 'receipts_notice'
       OR (to_jsonb(NEW) - '{outcome,judged_at,payment_id,merchant_id}'::text[])
          IS DISTINCT FROM (to_jsonb(OLD) - '{outcome,judged_at,payment_id,merchant_id}'::text[]) THEN
        RAISE EXCEPTION 'the word of a bank is kept as it was said' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER receipts_guard BEFORE UPDATE OR DELETE ON receipts_receipt
    FOR EACH ROW EXECUTE FUNCTION receipts_guard();
CREATE TRIGGER receipts_guard BEFORE UPDATE OR DELETE ON receipts_notice
    FOR EACH ROW EXECUTE FUNCTION receipts_guard();
"""
UNGUARD = """
DROP TRIGGER receipts_guard ON receipts_receipt;
DROP TRIGGER receipts_guard ON receipts_notice;
DROP FUNCTION receipts_guard();
"""


class Migration(migrations.Migration):
    dependencies = [("receipts", "0001_initial")]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
