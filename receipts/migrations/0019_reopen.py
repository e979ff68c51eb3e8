"""What was dismissed, or booked as a loss, by mistake may be opened again: a new round, which is ended once too."""

from importlib import import_module

import core.columns
from django.db import migrations, models

BEFORE = import_module("receipts.migrations.0018_list_exceptions")
DISMISSED = "WHERE subject_id = notice.id AND deed = 'dismissed'"
OPENED = """
        AND NOT EXISTS (SELECT FROM receipts_act AS later WHERE later.subject_id = notice.id
            AND later.deed = 'reopened' AND later.round > receipts_act.round)"""
AGAIN = "CREATE OR REPLACE VIEW"
VIEW_BEFORE = BEFORE.VIEW.replace("CREATE VIEW", AGAIN)
VIEW = VIEW_BEFORE.replace(DISMISSED, DISMISSED + OPENED)
GUARD = """
CREATE FUNCTION receipts_guard_rounds() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    opened integer := (SELECT count(*) FROM receipts_act WHERE subject_id = NEW.subject_id AND deed = 'reopened');
BEGIN
    IF NEW.deed <> 'reopened' AND NEW.round <> opened OR NEW.deed = 'reopened' AND (
        NEW.round <> opened + 1 OR NOT EXISTS (
            SELECT FROM receipts_act
            WHERE subject_id = NEW.subject_id AND round = opened AND deed IN ('dismissed', 'lost')
        )
    ) THEN
        RAISE EXCEPTION 'only what was ended is opened again, once' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER receipts_guard_rounds BEFORE INSERT ON receipts_act FOR EACH ROW
    WHEN (NEW.deed IN ('dismissed', 'kept', 'lost', 'reopened'))
    EXECUTE FUNCTION receipts_guard_rounds();
"""
UNGUARD = """
DROP TRIGGER receipts_guard_rounds ON receipts_act;
DROP FUNCTION receipts_guard_rounds();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("receipts", "0018_list_exceptions"),
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
        migrations.AddField(
            model_name="act",
            name="posted_as",
            field=core.columns.PublicId(
                db_collation="C",
                help_text="What the ledger calls a loss; empty where that is its subject.",
                max_length=31,
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="act",
            name="round",
            field=models.PositiveSmallIntegerField(
                db_default=0, default=0, help_text="How often its subject was opened again by then."
            ),
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
                    ("reopened", "Reopened"),
                ],
                max_length=17,
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
                            "reopened",
                        ],
                    )
                ),
                name="act_deed_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="act",
            constraint=models.UniqueConstraint(
                condition=models.Q(("deed__in", ["dismissed", "kept", "lost"])),
                fields=("subject_id", "round"),
                name="act_ends_a_subject_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="act",
            constraint=models.UniqueConstraint(
                condition=models.Q(("deed", "reopened")),
                fields=("subject_id", "round"),
                name="act_opens_a_subject_once",
            ),
        ),
        migrations.RunSQL(VIEW, VIEW_BEFORE),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
