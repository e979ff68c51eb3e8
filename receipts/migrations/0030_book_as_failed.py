"""A card payment whose acquirer charged something else is booked as failed, and leaves the list of exceptions."""

from importlib import import_module

from django.db import migrations, models

BEFORE = import_module("receipts.migrations.0026_contradictions")
VIEW = BEFORE.VIEW.replace("'booked_returned')", "'booked_returned', 'booked_failed')")
assert VIEW != BEFORE.VIEW
# The view is put together anew from its first part on.
PARTS = "".join(BEFORE.PARTS)
GUARD = """
CREATE TRIGGER receipts_guard_rounds_failed BEFORE INSERT ON receipts_act FOR EACH ROW
    WHEN (NEW.deed = 'booked_failed')
    EXECUTE FUNCTION receipts_guard_rounds();
"""
UNGUARD = "DROP TRIGGER receipts_guard_rounds_failed ON receipts_act;"


class Migration(migrations.Migration):
    dependencies = [
        ("receipts", "0029_exact_search"),
        ("transfers", "0012_answer_amount"),
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
                    ("booked_failed", "Booked Failed"),
                    ("reopened", "Reopened"),
                    ("confirmed", "Confirmed"),
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
                    ("deed__in", ["dismissed", "kept", "lost", "booked_returned", "booked_failed"])
                ),
                fields=("subject_id", "round"),
                name="act_ends_a_subject_once",
            ),
        ),
        migrations.RunSQL(PARTS + VIEW, PARTS + BEFORE.VIEW),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
