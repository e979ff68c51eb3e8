"""The tables of what banks said are never emptied."""

from django.db import migrations

GUARD = """
CREATE FUNCTION receipts_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the word of a bank is kept as it was said' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER receipts_kept BEFORE TRUNCATE ON receipts_receipt
    FOR EACH STATEMENT EXECUTE FUNCTION receipts_kept();
CREATE TRIGGER receipts_kept BEFORE TRUNCATE ON receipts_notice
    FOR EACH STATEMENT EXECUTE FUNCTION receipts_kept();
"""
UNGUARD = """
DROP TRIGGER receipts_kept ON receipts_receipt;
DROP TRIGGER receipts_kept ON receipts_notice;
DROP FUNCTION receipts_kept();
"""


class Migration(migrations.Migration):
    dependencies = [("receipts", "0003_reseal")]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
