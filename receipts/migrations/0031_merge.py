"""Staff may count two reports once that are one bank transaction."""

from importlib import import_module

import core.columns
from django.db import migrations, models

LOSSES = import_module("receipts.migrations.0015_losses")
REOPEN = import_module("receipts.migrations.0019_reopen")
SAME = import_module("receipts.migrations.0025_probably_same")
AGAIN = "CREATE OR REPLACE FUNCTION"


def function(sql: str, name: str) -> str:
    """The one function of this name, to be put in the place of the one there is."""
    return f"{AGAIN} {name}(" + sql.partition(f"FUNCTION {name}(")[2].partition("END $$;")[0] + "END $$;\n"


def changed(sql: str, *changes: tuple[str, str]) -> str:
    for before, after in changes:
        assert sql.count(before) == 1, before
        sql = sql.replace(before, after)
    return sql


MOVES_BEFORE = changed(
    LOSSES.GUARD,
    ("'>dismissed',\n", "'>dismissed', '>lost',\n"),
    ("'dismissed>'\n", "'dismissed>', 'lost>'\n"),
)
MOVES = changed(MOVES_BEFORE, ("'>lost',", "'>lost', '>merged',"), ("'lost>'", "'lost>', 'merged>'"))
ROUNDS_BEFORE = function(REOPEN.GUARD, "receipts_guard_rounds")
ROUNDS = changed(ROUNDS_BEFORE, ("('dismissed', 'lost')", "('dismissed', 'lost', 'merged')"))
SAME_BEFORE = function(SAME.FUNCTIONS, "receipts_probably_same")
# What was merged is no money of its own any more.
PROBABLY_SAME = changed(
    SAME_BEFORE,
    ("WHERE other.reference1 = one", "WHERE other.resolution <> 'merged' AND other.reference1 = one"),
    ("WHERE line.reference1 = one", "WHERE other.resolution <> 'merged' AND line.reference1 = one"),
)
GUARD = """
CREATE FUNCTION receipts_guard_merged() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM receipts_probably_same(NEW.id)) THEN
        RAISE EXCEPTION 'money of % is not probably counted already', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER receipts_guard_merged BEFORE UPDATE OF resolution ON receipts_receipt
    FOR EACH ROW WHEN (OLD.resolution = '' AND NEW.resolution = 'merged')
    EXECUTE FUNCTION receipts_guard_merged();
CREATE TRIGGER receipts_guard_rounds_merged BEFORE INSERT ON receipts_act FOR EACH ROW
    WHEN (NEW.deed = 'merged')
    EXECUTE FUNCTION receipts_guard_rounds();
"""
UNGUARD = """
DROP TRIGGER receipts_guard_rounds_merged ON receipts_act;
DROP TRIGGER receipts_guard_merged ON receipts_receipt;
DROP FUNCTION receipts_guard_merged();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0004_key_scopes"),
        ("payments", "0012_exact_search"),
        ("receipts", "0030_book_as_failed"),
        ("transactions", "0014_merge"),
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
        migrations.RemoveConstraint(
            model_name="receipt",
            name="receipt_resolution_known",
        ),
        migrations.AddField(
            model_name="act",
            name="merged_with",
            field=core.columns.PublicId(
                db_collation="C",
                help_text="The bank transaction that counts instead.",
                max_length=31,
                null=True,
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
                    ("merged", "Merged"),
                    ("dismissed", "Dismissed"),
                    ("kept", "Kept"),
                    ("lost", "Lost"),
                    ("booked_returned", "Booked Returned"),
                    ("booked_failed", "Booked Failed"),
                    ("reopened", "Reopened"),
                    ("confirmed", "Confirmed"),
                ],
                max_length=17,
            ),
        ),
        migrations.AlterField(
            model_name="act",
            name="posted_as",
            field=core.columns.PublicId(
                db_collation="C",
                help_text="What the ledger calls a loss or a merge; empty where that is its subject.",
                max_length=31,
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="receipt",
            name="resolution",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "Open"),
                    ("accepted", "Accepted"),
                    ("attached", "Attached"),
                    ("sending_back", "Sending Back"),
                    ("sent_back", "Sent Back"),
                    ("taken_back", "Taken Back"),
                    ("merged", "Merged"),
                    ("dismissed", "Dismissed"),
                    ("lost", "Lost"),
                ],
                default="",
                max_length=12,
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
                            "merged",
                            "dismissed",
                            "kept",
                            "lost",
                            "booked_returned",
                            "booked_failed",
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
                condition=models.Q(
                    ("deed__in", ["merged", "dismissed", "kept", "lost", "booked_returned", "booked_failed"])
                ),
                fields=("subject_id", "round"),
                name="act_ends_a_subject_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="act",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("deed", "merged"), ("merged_with__isnull", False)),
                    models.Q(models.Q(("deed", "merged"), _negated=True), ("merged_with__isnull", True)),
                    _connector="OR",
                ),
                name="act_names_the_other_iff_merged",
            ),
        ),
        migrations.AddConstraint(
            model_name="receipt",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "resolution__in",
                        [
                            "",
                            "accepted",
                            "attached",
                            "sending_back",
                            "sent_back",
                            "taken_back",
                            "merged",
                            "dismissed",
                            "lost",
                        ],
                    )
                ),
                name="receipt_resolution_known",
            ),
        ),
        migrations.RunSQL(
            MOVES + ROUNDS + PROBABLY_SAME + GUARD, UNGUARD + MOVES_BEFORE + ROUNDS_BEFORE + SAME_BEFORE
        ),
    ]
