"""Staff may book what a bank took back, and nobody here could give, as the operator's loss."""

from importlib import import_module

from django.db import migrations, models

BEFORE = import_module("receipts.migrations.0014_learn")
GUARD = (
    "CREATE OR REPLACE FUNCTION receipts_guard_moves()" + BEFORE.GUARD.partition("receipts_guard_moves()")[2]
)


class Migration(migrations.Migration):
    dependencies = [("receipts", "0014_learn"), ("transactions", "0009_losses")]

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
        migrations.RemoveConstraint(
            model_name="receipt",
            name="receipt_resolution_fits_kind",
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
                ],
                max_length=17,
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
                            "dismissed",
                            "kept",
                            "lost",
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
                fields=("subject_id",),
                name="act_ends_a_subject_once",
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
                            "dismissed",
                            "lost",
                        ],
                    )
                ),
                name="receipt_resolution_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="receipt",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("resolution", ""),
                    models.Q(
                        ("kind", "credit"), models.Q(("resolution__in", ["dismissed", "lost"]), _negated=True)
                    ),
                    models.Q(("kind", "reversal"), ("resolution__in", ["dismissed", "lost"])),
                    _connector="OR",
                ),
                name="receipt_resolution_fits_kind",
            ),
        ),
        migrations.RunSQL(
            GUARD.replace("'>dismissed',\n", "'>dismissed', '>lost',\n").replace(
                "'dismissed>'\n", "'dismissed>', 'lost>'\n"
            ),
            GUARD,
        ),
    ]
