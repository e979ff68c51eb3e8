"""A payment shows the money that came for it and did not fit."""

import core.columns
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0010_three_d_secure"),
    ]

    operations = [
        migrations.AddField(
            model_name="payment",
            name="has_exceptions",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Money came for it that did not fit: see `exceptions`.",
            ),
        ),
        migrations.CreateModel(
            name="PaymentException",
            fields=[
                (
                    "id",
                    core.columns.PublicIdKey(
                        db_collation="C",
                        help_text="The bank transaction.",
                        max_length=31,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("reason", models.CharField(max_length=16)),
                ("amount", models.BigIntegerField(help_text="Satang.")),
                ("status", models.CharField(help_text="Open, or what was decided.", max_length=12)),
                ("reported_at", models.DateTimeField(help_text="By the bank, to us.")),
                (
                    "payment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="exceptions",
                        to="payments.payment",
                    ),
                ),
            ],
            options={
                "ordering": ["reported_at", "id"],
                "default_permissions": ("view",),
            },
        ),
    ]
