"""What waits for a person, as one list: each part of it is found by a partial index, however long the history."""

import django.db.models.deletion
from django.db import migrations, models

import core.columns

VIEW = """
CREATE VIEW receipts_waiting AS
SELECT receipt.id, CASE kind WHEN 'reversal' THEN 'reversal' ELSE outcome END AS why, receipt.bank,
    coalesce(receipt.merchant_id, merchant.id) AS merchant_id, payment_id, amount, reference1,
    coalesce(nullif(also_known_as, ''), bank_transaction_id) AS bank_transaction_id, received_at AS since
FROM receipts_receipt receipt LEFT JOIN merchants_merchant merchant
    ON merchant.bank = receipt.bank AND merchant.biller_id = receipt.biller_id AND merchant.biller_id <> ''
WHERE outcome IN ('unmatched', 'duplicate', 'amount_mismatch', 'late') AND resolution = ''
UNION ALL
SELECT notice.id, notice.verdict, notice.bank, receipt.merchant_id, receipt.payment_id, NULL,
    coalesce(receipt.reference1, ''), coalesce(receipt.bank_transaction_id, ''), notice.received_at
FROM receipts_notice notice LEFT JOIN receipts_receipt receipt ON receipt.id = notice.receipt_id
WHERE notice.verdict IN ('conflict', 'unreadable') AND NOT EXISTS (
    SELECT FROM receipts_act WHERE subject_id = notice.id AND deed = 'dismissed'
)
UNION ALL
SELECT id, 'returned', split_part(route, ':', 2), merchant_id, payment_id, amount, '', '', returned_at
FROM refunds_refund
WHERE returned_at IS NOT NULL AND NOT EXISTS (
    SELECT FROM receipts_act WHERE subject_id = refunds_refund.id AND deed = 'kept'
);
"""


class Migration(migrations.Migration):
    dependencies = [("receipts", "0006_guard_exceptions"), ("refunds", "0003_reversals")]
    operations = [
        migrations.RunSQL(VIEW, "DROP VIEW receipts_waiting"),
        migrations.CreateModel(
            name="Waiting",
            fields=[
                (
                    "id",
                    core.columns.PublicIdKey(
                        db_collation="C", max_length=31, primary_key=True, serialize=False
                    ),
                ),
                (
                    "why",
                    models.CharField(
                        choices=[
                            ("unmatched", "nobody asked for it"),
                            ("duplicate", "paid already"),
                            ("amount_mismatch", "another amount"),
                            ("late", "paid late"),
                            ("reversal", "taken back, never had"),
                            ("conflict", "told differently"),
                            ("unreadable", "not understood"),
                            ("returned", "refund came back"),
                        ],
                        max_length=16,
                        verbose_name="reason",
                    ),
                ),
                ("bank", models.CharField(max_length=20)),
                ("payment_id", core.columns.PublicId(db_collation="C", max_length=31, null=True)),
                ("amount", models.BigIntegerField(help_text="Satang.", null=True)),
                ("reference1", models.CharField(max_length=35)),
                ("bank_transaction_id", models.CharField(max_length=64)),
                ("since", models.DateTimeField()),
                (
                    "merchant",
                    models.ForeignKey(
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
                "db_table": "receipts_waiting",
                "managed": False,
                "default_permissions": (),
            },
        ),
    ]
