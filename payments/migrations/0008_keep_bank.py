"""A merchant that has made codes keeps its bank and its biller id: they are paid for as long as they are out."""

from django.db import migrations

GUARD = """
CREATE FUNCTION payments_keep_bank() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM payments_payment WHERE merchant_id = OLD.id AND qr_code_id IS NOT NULL) THEN
        RAISE EXCEPTION 'a merchant that has made codes keeps its bank and its biller id' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER payments_keep_bank BEFORE UPDATE OF bank, biller_id ON merchants_merchant
    FOR EACH ROW
    WHEN (OLD.bank <> '' AND (NEW.bank, NEW.biller_id) IS DISTINCT FROM (OLD.bank, OLD.biller_id))
    EXECUTE FUNCTION payments_keep_bank();
"""
UNGUARD = "DROP TRIGGER payments_keep_bank ON merchants_merchant; DROP FUNCTION payments_keep_bank();"


class Migration(migrations.Migration):
    dependencies = [("merchants", "0003_bank_links"), ("payments", "0007_bank_transaction")]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
