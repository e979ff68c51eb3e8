"""Money of nobody's payment may go back as well, and an order says at whose bank it is sent."""

from importlib import import_module

import core.columns
from django.db import migrations, models


BEFORE = import_module("transfers.migrations.0002_guard_moves")
FUNCTION = BEFORE.GUARD.partition("CREATE TRIGGER")[0].replace(
    "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
)
GUARD = FUNCTION.replace(
    "NEW.charge_id, NEW.created_at)", "NEW.charge_id, NEW.created_at, NEW.merchant_id)"
).replace("OLD.charge_id, OLD.created_at)", "OLD.charge_id, OLD.created_at, OLD.merchant_id)")
UNGUARD = FUNCTION


class Migration(migrations.Migration):
    dependencies = [
        ("transfers", "0003_settled_by_hand"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="transfer",
            name="transfer_purpose_known",
        ),
        migrations.AddField(
            model_name="transfer",
            name="merchant_id",
            field=core.columns.PublicId(
                blank=True,
                db_collation="C",
                default="",
                help_text="At whose bank; empty where it is nobody's.",
                max_length=31,
            ),
        ),
        migrations.AlterField(
            model_name="transfer",
            name="id",
            field=core.columns.PublicIdKey(
                db_collation="C",
                help_text="Of the refund, withdrawal or return; the bank knows the order by it.",
                max_length=31,
                primary_key=True,
                serialize=False,
            ),
        ),
        migrations.AlterField(
            model_name="transfer",
            name="purpose",
            field=models.CharField(
                choices=[("refund", "Refund"), ("withdrawal", "Withdrawal"), ("return", "Return")],
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="transfer",
            constraint=models.CheckConstraint(
                condition=models.Q(("purpose__in", ["refund", "withdrawal", "return"])),
                name="transfer_purpose_known",
            ),
        ),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
