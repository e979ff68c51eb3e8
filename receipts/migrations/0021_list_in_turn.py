"""What is listed is right also where two commits at the same moment each change a part of it.

A message waits for its receipt, which may just be judged; a merchant's biller for all who list anything.
"""

from importlib import import_module

from django.db import migrations

LISTED = import_module("receipts.migrations.0018_list_exceptions")
SEARCHED = import_module("receipts.migrations.0020_search_by_order")
BILLED = "FUNCTION receipts_list_billed() RETURNS trigger LANGUAGE plpgsql"
BILLED_BEFORE = (
    f"CREATE OR REPLACE {BILLED}" + LISTED.LIST.partition(BILLED)[2].partition("END $$;")[0] + "END $$;"
)
# The table and no rows of receipts: whoever lists has those already, and would wait in a circle.
IN_TURN = f"""
CREATE OR REPLACE {BILLED} SET enable_seqscan = off AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND (NEW.bank, NEW.biller_id) IS NOT DISTINCT FROM (OLD.bank, OLD.biller_id)
       OR TG_OP = 'INSERT' AND NEW.biller_id = '' THEN
        RETURN NULL;
    END IF;
    LOCK TABLE receipts_waiting IN SHARE ROW EXCLUSIVE MODE;
    UPDATE receipts_waiting AS waiting
    SET merchant_id = (SELECT merchant_id FROM receipts_open WHERE id = waiting.id)
    WHERE id IN (
        SELECT id FROM receipts_waiting WHERE merchant_id = NEW.id
        UNION
        SELECT id FROM receipts_receipt
        WHERE bank = NEW.bank AND biller_id = NEW.biller_id AND biller_id <> ''
            AND outcome IN {LISTED.HELD} AND resolution = ''
    );
    RETURN NULL;
END $$;

CREATE FUNCTION receipts_list_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM receipts_receipt WHERE id = NEW.receipt_id FOR NO KEY UPDATE;
    PERFORM receipts_list(NEW.id);
    RETURN NULL;
END $$;
"""  # noqa: S608
NEW_MESSAGE = """
DROP TRIGGER receipts_list_new ON receipts_notice;
CREATE TRIGGER receipts_list_new AFTER INSERT ON receipts_notice FOR EACH ROW
    WHEN (NEW.verdict IN ('conflict', 'unreadable'))
    EXECUTE FUNCTION {}();
"""
ANEW = f"""
LOCK TABLE receipts_waiting IN SHARE ROW EXCLUSIVE MODE;
DELETE FROM receipts_waiting;
INSERT INTO receipts_waiting ({LISTED.COLUMNS}, words) SELECT {LISTED.COLUMNS}, {SEARCHED.MORE} FROM receipts_open;
"""  # noqa: S608


class Migration(migrations.Migration):
    dependencies = [("receipts", "0020_search_by_order")]
    operations = [
        # All that waits is listed anew, which may take longer than a request.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.RunSQL(
            IN_TURN + NEW_MESSAGE.format("receipts_list_message"),
            NEW_MESSAGE.format("receipts_list_itself")
            + "DROP FUNCTION receipts_list_message();"
            + BILLED_BEFORE,
        ),
        migrations.RunSQL(ANEW, migrations.RunSQL.noop),
    ]
