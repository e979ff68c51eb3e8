"""A merchant that its bank does not answer rests alone."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("merchants", "0003_bank_links"), ("receipts", "0012_lanes")]
    operations = [
        migrations.CreateModel(
            name="Rest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("bank", models.CharField(max_length=20)),
                ("silences", models.IntegerField(help_text="Rounds in a row without any answer.")),
                ("until", models.DateTimeField()),
                (
                    "merchant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="merchants.merchant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("bank", "merchant"), name="rest_one_of_merchant")
                ],
            },
        ),
    ]
