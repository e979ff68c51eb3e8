"""What waits for a person is a table with indexes of its own, kept by the database in the commit of what changes.

What it holds is still said by one view: that was read as a whole for each page, and with it all that was ever
dismissed.
"""

from importlib import import_module

import django.db.models.deletion
from django.db import migrations, models

import core.columns

BEFORE = import_module("receipts.migrations.0007_waiting")

COLUMNS = "id, why, bank, merchant_id, payment_id, amount, reference1, bank_transaction_id, since"
HELD = "('unmatched', 'duplicate', 'amount_mismatch', 'late')"
# What is glued together is in no partial index: else, as long as the statistics know of no exceptions, one is
# looked up by reading all of them.
VIEW = f"""
CREATE VIEW receipts_open AS
SELECT receipt.id, CASE kind WHEN 'reversal' THEN 'reversal' ELSE outcome END AS why, receipt.bank,
    coalesce(receipt.merchant_id, merchant.id) AS merchant_id, payment_id, amount, reference1,
    coalesce(nullif(also_known_as, ''), bank_transaction_id) AS bank_transaction_id, received_at AS since
FROM receipts_receipt receipt LEFT JOIN merchants_merchant merchant
    ON merchant.bank = receipt.bank AND merchant.biller_id = receipt.biller_id AND merchant.biller_id <> ''
WHERE outcome || resolution IN {HELD}
UNION ALL
SELECT notice.id, notice.verdict, notice.bank, receipt.merchant_id, receipt.payment_id, NULL,
    coalesce(receipt.reference1, ''), coalesce(receipt.bank_transaction_id, ''), notice.received_at
FROM receipts_notice notice LEFT JOIN receipts_receipt receipt ON receipt.id = notice.receipt_id
WHERE notice.verdict || '' IN ('conflict', 'unreadable') AND NOT EXISTS (
    SELECT FROM receipts_act WHERE subject_id = notice.id AND deed = 'dismissed'
)
UNION ALL
SELECT id, 'returned', split_part(route, ':', 2), merchant_id, payment_id, amount, '', '', returned_at
FROM refunds_refund
WHERE returned_at IS NOT NULL AND NOT EXISTS (
    SELECT FROM receipts_act WHERE subject_id = refunds_refund.id AND deed = 'kept'
);
"""  # noqa: S608
# Each lists its subject anew under the lock of the subject's row, so that of two at once the later sees what
# the earlier did; by its id, also where the planner believes that the tables are as empty as they once were.
LIST = f"""
CREATE FUNCTION receipts_list(subject text) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    PERFORM FROM receipts_receipt WHERE id = subject FOR NO KEY UPDATE;
    PERFORM FROM receipts_notice WHERE id = subject FOR NO KEY UPDATE;
    DELETE FROM receipts_waiting WHERE id = subject;
    INSERT INTO receipts_waiting ({COLUMNS}, words)
        SELECT {COLUMNS}, upper(concat_ws(' ', id, payment_id, reference1, bank_transaction_id))
        FROM receipts_open WHERE id = subject;
END $$;

CREATE FUNCTION receipts_list_itself() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM receipts_list(NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER receipts_list_new AFTER INSERT ON receipts_receipt FOR EACH ROW
    WHEN (NEW.outcome IN {HELD} AND NEW.resolution = '')
    EXECUTE FUNCTION receipts_list_itself();
CREATE TRIGGER receipts_list_changed AFTER UPDATE OF outcome, resolution, also_known_as ON receipts_receipt
    FOR EACH ROW
    WHEN (OLD.outcome IN {HELD} AND OLD.resolution = '' OR NEW.outcome IN {HELD} AND NEW.resolution = '')
    EXECUTE FUNCTION receipts_list_itself();
CREATE TRIGGER receipts_list_new AFTER INSERT ON receipts_notice FOR EACH ROW
    WHEN (NEW.verdict IN ('conflict', 'unreadable'))
    EXECUTE FUNCTION receipts_list_itself();
CREATE TRIGGER receipts_list_returned AFTER UPDATE OF returned_at ON refunds_refund FOR EACH ROW
    WHEN (NEW.returned_at IS DISTINCT FROM OLD.returned_at)
    EXECUTE FUNCTION receipts_list_itself();

CREATE FUNCTION receipts_list_subject() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM receipts_list(NEW.subject_id);
    RETURN NULL;
END $$;
CREATE TRIGGER receipts_list_subject AFTER INSERT ON receipts_act FOR EACH ROW
    WHEN (NOT starts_with(NEW.subject_id, 'rcp_'))
    EXECUTE FUNCTION receipts_list_subject();

CREATE FUNCTION receipts_list_notices() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM receipts_list(id) FROM receipts_notice
    WHERE receipt_id = NEW.id AND verdict IN ('conflict', 'unreadable');
    RETURN NULL;
END $$;
CREATE TRIGGER receipts_list_notices AFTER UPDATE OF payment_id, merchant_id ON receipts_receipt FOR EACH ROW
    WHEN ((NEW.payment_id, NEW.merchant_id) IS DISTINCT FROM (OLD.payment_id, OLD.merchant_id))
    EXECUTE FUNCTION receipts_list_notices();

CREATE FUNCTION receipts_list_billed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND (NEW.bank, NEW.biller_id) IS NOT DISTINCT FROM (OLD.bank, OLD.biller_id) THEN
        RETURN NULL;
    END IF;
    PERFORM receipts_list(id) FROM (
        SELECT id FROM receipts_waiting WHERE merchant_id = NEW.id
        UNION
        SELECT id FROM receipts_receipt
        WHERE bank = NEW.bank AND biller_id = NEW.biller_id AND biller_id <> ''
            AND outcome IN {HELD} AND resolution = ''
        ORDER BY id
    ) AS billed;
    RETURN NULL;
END $$;
CREATE TRIGGER receipts_list_billed AFTER INSERT OR UPDATE OF bank, biller_id ON merchants_merchant
    FOR EACH ROW EXECUTE FUNCTION receipts_list_billed();

INSERT INTO receipts_waiting ({COLUMNS}, words)
    SELECT {COLUMNS}, upper(concat_ws(' ', id, payment_id, reference1, bank_transaction_id)) FROM receipts_open;
"""  # noqa: S608
UNLIST = """
DROP TRIGGER receipts_list_billed ON merchants_merchant;
DROP TRIGGER receipts_list_notices ON receipts_receipt;
DROP TRIGGER receipts_list_subject ON receipts_act;
DROP TRIGGER receipts_list_returned ON refunds_refund;
DROP TRIGGER receipts_list_new ON receipts_notice;
DROP TRIGGER receipts_list_changed ON receipts_receipt;
DROP TRIGGER receipts_list_new ON receipts_receipt;
DROP FUNCTION receipts_list_billed();
DROP FUNCTION receipts_list_notices();
DROP FUNCTION receipts_list_subject();
DROP FUNCTION receipts_list_itself();
DROP FUNCTION receipts_list(text);
"""
WHYS = [
    ("unmatched", "nobody asked for it"),
    ("duplicate", "paid already"),
    ("amount_mismatch", "another amount"),
    ("late", "paid late"),
    ("reversal", "taken back, never had"),
    ("conflict", "told differently"),
    ("unreadable", "not understood"),
    ("returned", "refund came back"),
]


class Migration(migrations.Migration):
    dependencies = [
        ("receipts", "0017_say_more"),
        ("refunds", "0005_takebacks"),
        ("merchants", "0003_bank_links"),
    ]
    operations = [
        # All that ever came is looked at, which takes longer than a request may.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel("Waiting")],
            database_operations=[
                migrations.RunSQL("DROP VIEW receipts_waiting", BEFORE.VIEW),
                migrations.RunSQL(VIEW, "DROP VIEW receipts_open"),
            ],
        ),
        migrations.CreateModel(
            name="Waiting",
            fields=[
                (
                    "id",
                    core.columns.PublicIdKey(
                        db_collation="C", max_length=31, primary_key=True, serialize=False
                    ),
                ),
                ("why", models.CharField(choices=WHYS, max_length=16, verbose_name="reason")),
                ("bank", models.CharField(max_length=20)),
                ("payment_id", core.columns.PublicId(db_collation="C", max_length=31, null=True)),
                ("amount", models.BigIntegerField(help_text="Satang.", null=True)),
                ("reference1", models.CharField(max_length=35)),
                ("bank_transaction_id", models.CharField(max_length=64)),
                ("since", models.DateTimeField()),
                (
                    "words",
                    models.TextField(
                        db_collation="C", help_text="What it is searched by, in capitals: ids and references."
                    ),
                ),
                (
                    "merchant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="merchants.merchant",
                    ),
                ),
            ],
            options={
                "verbose_name": "exception",
                "verbose_name_plural": "exceptions",
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["since", "id"], name="waiting_oldest_first"),
                    models.Index(fields=["why", "since", "id"], name="waiting_by_reason"),
                    models.Index(fields=["amount", "since", "id"], name="waiting_by_amount"),
                    models.Index(fields=["bank", "since", "id"], name="waiting_by_bank"),
                    models.Index(fields=["merchant", "since", "id"], name="waiting_by_merchant"),
                ],
            },
        ),
        migrations.RunSQL(LIST, UNLIST),
    ]
