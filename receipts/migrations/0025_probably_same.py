"""Money that is probably the same transaction as another is not moved until the bank proves that there are two."""

from django.db import migrations, models

FILL = """
SET LOCAL statement_timeout = 0;
ALTER TABLE receipts_statementline DISABLE TRIGGER USER;
UPDATE receipts_statementline AS line SET reference1 = receipt.reference1
FROM receipts_receipt AS receipt WHERE receipt.id = line.receipt_id;
ALTER TABLE receipts_statementline ENABLE TRIGGER USER;
"""
# The first has the rule of `receipts.joining.in_one_bank_day`.
FUNCTIONS = """
CREATE FUNCTION receipts_in_one_bank_day(one timestamptz, other timestamptz) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT (one AT TIME ZONE 'Asia/Bangkok')::date = (other AT TIME ZONE 'Asia/Bangkok')::date
        OR abs(extract(epoch FROM one - other)) <= 300
$$;

CREATE FUNCTION receipts_probably_same(subject text) RETURNS SETOF text
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
    one receipts_receipt := (SELECT row FROM receipts_receipt AS row WHERE row.id = subject AND kind = 'credit');
    is_named boolean := one.source <> 'statement' OR one.also_known_as <> '';
BEGIN
    IF EXISTS (SELECT FROM receipts_statementline WHERE receipt_id = subject) THEN
        RETURN QUERY SELECT other.id::text FROM receipts_receipt AS other
            WHERE other.reference1 = one.reference1 AND other.amount = one.amount
                AND other.biller_id = one.biller_id AND other.bank = one.bank AND other.kind = 'credit'
                AND (other.source <> 'statement' OR other.also_known_as <> '')
                AND NOT EXISTS (SELECT FROM receipts_statementline WHERE receipt_id = other.id)
                AND (NOT is_named OR receipts_in_one_bank_day(one.paid_at, other.paid_at));
    ELSE
        RETURN QUERY SELECT other.id::text FROM receipts_statementline AS line
            JOIN receipts_receipt AS other ON other.id = line.receipt_id
            WHERE line.reference1 = one.reference1 AND line.amount = one.amount
                AND line.account = one.biller_id AND line.bank = one.bank AND line.kind = 'credit'
                AND (
                    other.source = 'statement' AND other.also_known_as = ''
                    OR receipts_in_one_bank_day(one.paid_at, other.paid_at)
                );
    END IF;
END $$;

CREATE FUNCTION receipts_guard_probably_same() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moved text := to_jsonb(NEW) ->> CASE TG_TABLE_NAME WHEN 'receipts_return' THEN 'receipt_id' ELSE 'id' END;
BEGIN
    IF EXISTS (SELECT FROM receipts_probably_same(moved)) THEN
        RAISE EXCEPTION 'money of % is probably counted already', moved USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER receipts_guard_probably_same BEFORE INSERT ON receipts_return
    FOR EACH ROW EXECUTE FUNCTION receipts_guard_probably_same();
CREATE TRIGGER receipts_guard_probably_same BEFORE UPDATE OF resolution ON receipts_receipt
    FOR EACH ROW WHEN (
        OLD.resolution = '' AND NEW.resolution IN ('accepted', 'attached', 'sending_back', 'sent_back')
    )
    EXECUTE FUNCTION receipts_guard_probably_same();
"""
UNDO = """
DROP TRIGGER receipts_guard_probably_same ON receipts_receipt;
DROP TRIGGER receipts_guard_probably_same ON receipts_return;
DROP FUNCTION receipts_guard_probably_same();
DROP FUNCTION receipts_probably_same(text);
DROP FUNCTION receipts_in_one_bank_day(timestamptz, timestamptz);
"""


class Migration(migrations.Migration):
    dependencies = [("receipts", "0024_confirmation_inquiries")]
    operations = [
        migrations.AddField(
            model_name="statementline",
            name="reference1",
            field=models.CharField(blank=True, db_default="", default="", max_length=35),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name="receipt",
            index=models.Index(
                condition=models.Q(
                    ("kind", "credit"),
                    models.Q(
                        models.Q(("source", "statement"), _negated=True),
                        models.Q(("also_known_as", ""), _negated=True),
                        _connector="OR",
                    ),
                ),
                fields=["reference1", "amount", "biller_id", "bank"],
                name="receipt_credit_with_bank_id",
            ),
        ),
        migrations.AddIndex(
            model_name="statementline",
            index=models.Index(
                condition=models.Q(("kind", "credit")),
                fields=["reference1", "amount", "account", "bank"],
                name="statementline_of_credit",
            ),
        ),
        migrations.RunSQL(FUNCTIONS, UNDO),
    ]
