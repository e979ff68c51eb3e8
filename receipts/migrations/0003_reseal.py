"""The word of a bank stays as it was said when it is sealed with another key.

`manage.py reseal` says so within its own transaction (SET LOCAL qr.resealing = 'on'). Then the sealed columns may
change and nothing else; everybody else finds the guard as before. What a token holds the database cannot see.
"""

from django.db import migrations

GUARD = """
CREATE OR REPLACE FUNCTION receipts_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    free text[] := '{}';
BEGIN
    IF current_setting('qr.resealing', true) = 'on' THEN
        free := '{payer_account_sealed,body_sealed}';
    ELSIF TG_TABLE_NAME = 'receipts_receipt' THEN
        free := '{outcome,judged_at,payment_id,merchant_id}';
    END IF;
    IF TG_OP = 'DELETE' OR (to_jsonb(NEW) - free) IS DISTINCT FROM (to_jsonb(OLD) - free) THEN
        RAISE EXCEPTION 'the word of a bank is kept as it was said' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
"""
GUARD_BEFORE = """
CREATE OR REPLACE FUNCTION receipts_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR TG_TABLE_NAME = 'receipts_notice'
       OR (to_jsonb(NEW) - '{outcome,judged_at,payment_id,merchant_id}'::text[])
          IS DISTINCT FROM (to_jsonb(OLD) - '{outcome,judged_at,payment_id,merchant_id}'::text[]) THEN
        RAISE EXCEPTION 'the word of a bank is kept as it was said' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("receipts", "0002_guard_word")]
    operations = [migrations.RunSQL(GUARD, GUARD_BEFORE)]
