"""What a bank says against our record is listed until staff end it."""

from importlib import import_module

import core.columns
from django.db import migrations, models

# The view has been changed by several migrations: this one adds what banks contradict.
PART = """
UNION ALL
SELECT id, 'contradiction', split_part(route, ':', 2), CAST(nullif(merchant_id, '') AS varchar(31)),
    CAST(CASE WHEN starts_with(subject_id, 'pay_') THEN subject_id
        ELSE (SELECT payment_id FROM refunds_refund WHERE refunds_refund.id = subject_id) END AS varchar(31)),
    amount, CAST(subject_id AS varchar(35)) COLLATE "default", bank_reference, at
FROM transfers_contradiction AS contradiction WHERE NOT EXISTS (
    SELECT FROM receipts_act WHERE subject_id = contradiction.id AND deed IN ('dismissed', 'booked_returned')
        AND NOT EXISTS (SELECT FROM receipts_act AS later WHERE later.subject_id = contradiction.id
            AND later.deed = 'reopened' AND later.round > receipts_act.round)
)
"""
VIEW = f"""
DO $$ BEGIN
    EXECUTE 'CREATE OR REPLACE VIEW receipts_open AS ' || rtrim(pg_get_viewdef('receipts_open'::regclass), '; ')
        || $view${PART}$view$;
END $$;
"""
# Of those before it the view is put together anew.
PARTS = [
    import_module("receipts.migrations.0019_reopen").VIEW,
    import_module("receipts.migrations.0024_confirmation_inquiries").VIEW,
]
LIST = """
CREATE TRIGGER receipts_list_new AFTER INSERT ON transfers_contradiction FOR EACH ROW
    EXECUTE FUNCTION receipts_list_itself();
CREATE TRIGGER receipts_guard_rounds_returned BEFORE INSERT ON receipts_act FOR EACH ROW
    WHEN (NEW.deed = 'booked_returned')
    EXECUTE FUNCTION receipts_guard_rounds();
"""
UNLIST = """
DROP TRIGGER receipts_guard_rounds_returned ON receipts_act;
DROP TRIGGER receipts_list_new ON transfers_contradiction;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("receipts", "0025_probably_same"),
        ("transfers", "0010_contradictions"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="act",
            name="act_deed_known",
        ),
        migrations.RemoveConstraint(
            model_name="act",
            name="act_ends_a_subject_once",
        ),
        migrations.AlterField(
            model_name="act",
            name="deed",
            field=models.CharField(
                choices=[
                    ("accepted", "Accepted"),
                    ("attached", "Attached"),
                    ("sent_back", "Sent Back"),
                    ("sent_back_by_hand", "Sent Back By Hand"),
                    ("dismissed", "Dismissed"),
                    ("kept", "Kept"),
                    ("lost", "Lost"),
                    ("booked_returned", "Booked Returned"),
                    ("reopened", "Reopened"),
                    ("confirmed", "Confirmed"),
                ],
                max_length=17,
            ),
        ),
        migrations.AlterField(
            model_name="act",
            name="subject_id",
            field=core.columns.PublicId(
                db_collation="C", help_text="The receipt, notice, refund or contradiction.", max_length=31
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
                    ("contradiction", "Bank contradicts our record"),
                ],
                max_length=16,
                verbose_name="reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="act",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "deed__in",
                        [
                            "accepted",
                            "attached",
                            "sent_back",
                            "sent_back_by_hand",
                            "dismissed",
                            "kept",
                            "lost",
                            "booked_returned",
                            "reopened",
                            "confirmed",
                        ],
                    )
                ),
                name="act_deed_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="act",
            constraint=models.UniqueConstraint(
                condition=models.Q(("deed__in", ["dismissed", "kept", "lost", "booked_returned"])),
                fields=("subject_id", "round"),
                name="act_ends_a_subject_once",
            ),
        ),
        migrations.RunSQL(VIEW, "".join(PARTS)),
        migrations.RunSQL(LIST, UNLIST),
    ]
