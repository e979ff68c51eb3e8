"""Codes that somebody waits for are asked about first."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("receipts", "0011_guard_more")]
    operations = [
        migrations.RemoveIndex("inquiry", "inquiry_due"),
        migrations.AddField(
            "inquiry",
            "is_fresh",
            models.BooleanField(db_default=True, default=True, help_text="Somebody may wait at the till."),
        ),
        migrations.AddField(
            "turn", "rounds", models.IntegerField(db_default=0, default=0, help_text="So far.")
        ),
        migrations.AddIndex(
            "inquiry",
            models.Index(
                fields=["bank", "is_fresh", "due_at"],
                condition=models.Q(due_at__isnull=False),
                name="inquiry_due_by_lane",
            ),
        ),
    ]
