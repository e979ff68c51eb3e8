"""A refund that a bank made by itself is born completed, and says by which receipt."""

from importlib import import_module

import core.columns
from django.db import migrations, models


BEFORE = import_module("refunds.migrations.0002_guard_moves")
FUNCTION = BEFORE.GUARD.partition("CREATE TRIGGER")[0].replace(
    "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
)
GUARD = (
    FUNCTION.replace(
        "NEW.status <> 'pending' THEN",
        "NEW.status <> (CASE WHEN NEW.reversal_id IS NULL THEN 'pending' ELSE 'completed' END) THEN",
    )
    .replace("NEW.metadata::text, NEW.created_at)", "NEW.metadata::text, NEW.created_at, NEW.reversal_id)")
    .replace("OLD.metadata::text, OLD.created_at)", "OLD.metadata::text, OLD.created_at, OLD.reversal_id)")
)
UNGUARD = FUNCTION


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0002_late_money"),
        ("payments", "0007_bank_transaction"),
        ("refunds", "0002_guard_moves"),
        ("transactions", "0008_legal_history"),
    ]

    operations = [
        migrations.AddField(
            model_name="refund",
            name="reversal_id",
            field=core.columns.PublicId(
                db_collation="C",
                help_text="The receipt by which the bank took the money back itself.",
                max_length=31,
                null=True,
                unique=True,
            ),
        ),
        migrations.AddConstraint(
            model_name="refund",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("reversal_id__isnull", True),
                    models.Q(("returned_at__isnull", True), ("status", "completed")),
                    _connector="OR",
                ),
                name="refund_by_reversal_is_completed",
            ),
        ),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
