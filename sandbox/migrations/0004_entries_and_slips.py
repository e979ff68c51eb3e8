import django.db.models.deletion
from django.db import migrations, models

SLIPS = """
UPDATE sandbox_sandboxpayment
SET slip_reference = to_char(paid_at AT TIME ZONE 'Asia/Bangkok', 'YYYYMMDD') || substr(md5(id), 1, 17)
"""
ENTRIES = """
INSERT INTO sandbox_sandboxentry (payment_id, type, at, booked_at)
SELECT id, CASE scenario WHEN 'declined' THEN 'decline' ELSE 'credit' END, paid_at, least(paid_at, created_at)
FROM sandbox_sandboxpayment
"""


class Migration(migrations.Migration):
    dependencies = [
        ("sandbox", "0003_cards"),
    ]

    operations = [
        migrations.AddField(
            model_name="sandboxpayment",
            name="slip_reference",
            field=models.CharField(default="", help_text="What the payer's slip calls it.", max_length=25),
            preserve_default=False,
        ),
        migrations.RunSQL(SLIPS, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="sandboxpayment",
            constraint=models.UniqueConstraint(fields=("slip_reference",), name="sandboxpayment_slip_once"),
        ),
        migrations.AddIndex(
            model_name="sandboxpayment",
            index=models.Index(fields=["biller_id", "reference1"], name="sandboxpayment_of_code"),
        ),
        migrations.CreateModel(
            name="SandboxEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "payment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="entries",
                        to="sandbox.sandboxpayment",
                    ),
                ),
                (
                    "type",
                    models.CharField(
                        choices=[("credit", "Credit"), ("decline", "Decline"), ("reversal", "Reversal")],
                        max_length=8,
                    ),
                ),
                ("at", models.DateTimeField(help_text="The bank's time of it.")),
                ("booked_at", models.DateTimeField(help_text="From when on the books show it.")),
            ],
            options={
                "verbose_name_plural": "sandbox entries",
                "indexes": [models.Index(fields=["at", "id"], name="sandboxentry_by_time")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("type__in", ["credit", "decline", "reversal"])),
                        name="sandboxentry_type_known",
                    ),
                    models.UniqueConstraint(fields=("payment", "type"), name="sandboxentry_once"),
                ],
            },
        ),
        migrations.RunSQL(ENTRIES, migrations.RunSQL.noop),
    ]
