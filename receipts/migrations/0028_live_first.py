"""Live money is listed before that of the sandbox bank."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0003_bank_links"),
        ("receipts", "0027_show_on_payment"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="waiting",
            name="waiting_by_bank",
        ),
        migrations.RemoveIndex(
            model_name="waiting",
            name="waiting_by_merchant",
        ),
        migrations.AddField(
            model_name="waiting",
            name="is_sandbox",
            field=models.GeneratedField(
                db_persist=True,
                expression=models.Q(("bank", "sandbox")),
                help_text="Of the sandbox bank, whose money is not real.",
                output_field=models.BooleanField(),
            ),
        ),
        migrations.AddIndex(
            model_name="waiting",
            index=models.Index(fields=["is_sandbox", "since", "id"], name="waiting_live_first"),
        ),
        migrations.AddIndex(
            model_name="waiting",
            index=models.Index(fields=["why", "is_sandbox", "since", "id"], name="waiting_of_reason"),
        ),
        migrations.AddIndex(
            model_name="waiting",
            index=models.Index(fields=["bank", "is_sandbox", "since", "id"], name="waiting_of_bank"),
        ),
        migrations.AddIndex(
            model_name="waiting",
            index=models.Index(fields=["merchant", "is_sandbox", "since", "id"], name="waiting_of_merchant"),
        ),
    ]
