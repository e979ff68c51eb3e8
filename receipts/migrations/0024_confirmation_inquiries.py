"""Banks are asked about money that only an uploaded file or an unsigned notification reports."""

from importlib import import_module

import core.columns
import django.db.models.deletion
from django.db import migrations, models

BEFORE = import_module("receipts.migrations.0019_reopen")
# The view has been changed by several migrations: this one adds notifications that a bank does not confirm.
VIEW = """
DO $$ BEGIN
    EXECUTE 'CREATE OR REPLACE VIEW receipts_open AS ' || rtrim(pg_get_viewdef('receipts_open'::regclass), '; ')
    || $view$
UNION ALL
SELECT notice_id, 'unconfirmed', bank, merchant_id, payment_id, amount, reference1, bank_transaction_id, created_at
FROM receipts_confirmationinquiry AS inquiry
WHERE notice_id IS NOT NULL AND alerted_at IS NOT NULL AND confirmed_at IS NULL AND NOT EXISTS (
    SELECT FROM receipts_act WHERE subject_id = inquiry.notice_id AND deed = 'dismissed'
        AND NOT EXISTS (SELECT FROM receipts_act AS later WHERE later.subject_id = inquiry.notice_id
            AND later.deed = 'reopened' AND later.round > receipts_act.round)
)$view$;
END $$;
"""
LIST = """
CREATE FUNCTION receipts_list_unconfirmed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM receipts_list(NEW.notice_id);
    RETURN NULL;
END $$;
CREATE TRIGGER receipts_list_new AFTER INSERT ON receipts_confirmationinquiry FOR EACH ROW
    WHEN (NEW.alerted_at IS NOT NULL AND NEW.notice_id IS NOT NULL)
    EXECUTE FUNCTION receipts_list_unconfirmed();
CREATE TRIGGER receipts_list_changed AFTER UPDATE OF alerted_at, confirmed_at ON receipts_confirmationinquiry
    FOR EACH ROW
    WHEN (NEW.notice_id IS NOT NULL
        AND (NEW.alerted_at, NEW.confirmed_at) IS DISTINCT FROM (OLD.alerted_at, OLD.confirmed_at))
    EXECUTE FUNCTION receipts_list_unconfirmed();
"""
UNLIST = """
DROP TRIGGER receipts_list_changed ON receipts_confirmationinquiry;
DROP TRIGGER receipts_list_new ON receipts_confirmationinquiry;
DROP FUNCTION receipts_list_unconfirmed();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0003_bank_links"),
        ("receipts", "0023_confirm"),
    ]

    operations = [
        migrations.CreateModel(
            name="ConfirmationInquiry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("bank", models.CharField(max_length=20)),
                (
                    "payment_id",
                    core.columns.PublicId(
                        db_collation="C", help_text="That the reference names.", max_length=31, null=True
                    ),
                ),
                (
                    "bank_transaction_id",
                    models.CharField(
                        blank=True, default="", help_text="As the notification calls it.", max_length=64
                    ),
                ),
                ("biller_id", models.CharField(max_length=15)),
                ("reference1", models.CharField(max_length=35)),
                ("amount", models.BigIntegerField(help_text="Satang.")),
                ("paid_at", models.DateTimeField()),
                ("is_fresh", models.BooleanField(help_text="Somebody may wait at the till.")),
                ("attempts", models.SmallIntegerField(default=0)),
                (
                    "said",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("found", "Found"),
                            ("nothing", "Nothing"),
                            ("no_answer", "No Answer"),
                            ("unreadable", "Unreadable"),
                        ],
                        default="",
                        help_text="The latest answer.",
                        max_length=10,
                    ),
                ),
                ("due_at", models.DateTimeField(help_text="Null: it is over.", null=True)),
                ("lease_until", models.DateTimeField(help_text="A worker has it until then.", null=True)),
                ("created_at", models.DateTimeField()),
                (
                    "alerted_at",
                    models.DateTimeField(
                        help_text="Since then staff see it among the exceptions.", null=True
                    ),
                ),
                ("confirmed_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "confirmation inquiries",
            },
        ),
        migrations.RemoveConstraint(
            model_name="notice",
            name="notice_verdict_known",
        ),
        migrations.AlterField(
            model_name="notice",
            name="verdict",
            field=models.CharField(
                choices=[
                    ("new", "New"),
                    ("repeat", "Repeat"),
                    ("conflict", "Conflict"),
                    ("unreadable", "Unreadable"),
                    ("unsigned", "Unsigned"),
                ],
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="waiting",
            name="why",
            field=models.CharField(
                choices=[
                    ("unmatched", "nobody asked for it"),
                    ("duplicate", "paid already"),
                    ("amount_mismatch", "another amount"),
                    ("late", "paid late"),
                    ("reversal", "taken back, never had"),
                    ("conflict", "told differently"),
                    ("unreadable", "not understood"),
                    ("unconfirmed", "The bank does not confirm it"),
                    ("returned", "refund came back"),
                ],
                max_length=16,
                verbose_name="reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.CheckConstraint(
                condition=models.Q(("verdict__in", ["new", "repeat", "conflict", "unreadable", "unsigned"])),
                name="notice_verdict_known",
            ),
        ),
        migrations.AddField(
            model_name="confirmationinquiry",
            name="merchant",
            field=models.ForeignKey(
                db_index=False,
                help_text="At whose bank.",
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="merchants.merchant",
            ),
        ),
        migrations.AddField(
            model_name="confirmationinquiry",
            name="notice",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="confirmation_inquiry",
                to="receipts.notice",
            ),
        ),
        migrations.AddField(
            model_name="confirmationinquiry",
            name="receipt",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="confirmation_inquiry",
                to="receipts.receipt",
            ),
        ),
        migrations.AddIndex(
            model_name="confirmationinquiry",
            index=models.Index(
                condition=models.Q(("due_at__isnull", False)),
                fields=["bank", "is_fresh", "due_at"],
                name="confirmation_due_by_lane",
            ),
        ),
        migrations.AddIndex(
            model_name="confirmationinquiry",
            index=models.Index(
                condition=models.Q(("payment_id__isnull", False)),
                fields=["payment_id"],
                name="confirmation_of_payment",
            ),
        ),
        migrations.AddConstraint(
            model_name="confirmationinquiry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("bank_transaction_id", ""), ("notice__isnull", True), ("receipt__isnull", False)
                    ),
                    models.Q(
                        ("notice__isnull", False),
                        ("receipt__isnull", True),
                        models.Q(("bank_transaction_id", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="confirmation_has_one_cause",
            ),
        ),
        migrations.AddConstraint(
            model_name="confirmationinquiry",
            constraint=models.CheckConstraint(
                condition=models.Q(("confirmed_at__isnull", True), ("due_at__isnull", True), _connector="OR"),
                name="confirmation_is_over_when_confirmed",
            ),
        ),
        migrations.AddConstraint(
            model_name="confirmationinquiry",
            constraint=models.UniqueConstraint(
                condition=models.Q(("notice__isnull", False)),
                fields=("bank", "bank_transaction_id", "biller_id", "reference1"),
                name="confirmation_once_per_notification",
            ),
        ),
        migrations.RunSQL(VIEW, BEFORE.VIEW),
        migrations.RunSQL(LIST, UNLIST),
    ]
