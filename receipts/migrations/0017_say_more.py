import core.columns
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("receipts", "0016_guard_kinds"),
    ]

    operations = [
        migrations.AddField(
            model_name="inquiryanswer",
            name="request_id",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="Of the task or request that asked.",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="notice",
            name="order_id",
            field=core.columns.PublicId(
                db_collation="C",
                help_text="Of the refund, withdrawal or return that it speaks of.",
                max_length=31,
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="slipcheck",
            name="request_id",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="statement",
            name="request_id",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="statementline",
            name="why",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="It waits for staff: what is wrong.",
                max_length=200,
            ),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(
                condition=models.Q(("order_id__isnull", False)), fields=["order_id"], name="notice_of_order"
            ),
        ),
        migrations.AddIndex(
            model_name="slipcheck",
            index=models.Index(
                condition=models.Q(("shown_for__isnull", False)),
                fields=["shown_for"],
                name="slipcheck_of_payment",
            ),
        ),
    ]
