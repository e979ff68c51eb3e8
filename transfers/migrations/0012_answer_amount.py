"""What an acquirer charged is kept where it is not what was asked for."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("transfers", "0011_exact_search"),
    ]

    operations = [
        migrations.AddField(
            model_name="contradiction",
            name="answer_amount",
            field=models.BigIntegerField(
                help_text="In the smallest unit, where it moved another amount or currency.", null=True
            ),
        ),
        migrations.AddField(
            model_name="contradiction",
            name="answer_currency",
            field=models.CharField(blank=True, db_default="", default="", max_length=3),
        ),
    ]
