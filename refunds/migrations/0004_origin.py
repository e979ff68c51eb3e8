"""Who asked for a refund, and who canceled it: written once."""

from importlib import import_module

from django.db import migrations, models


BEFORE = import_module("refunds.migrations.0003_reversals")
GUARD = (
    BEFORE.GUARD.replace(
        "NEW.created_at, NEW.reversal_id)",
        "NEW.created_at, NEW.reversal_id, NEW.asked_by, NEW.asked_request_id)",
    )
    .replace(
        "OLD.created_at, OLD.reversal_id)",
        "OLD.created_at, OLD.reversal_id, OLD.asked_by, OLD.asked_request_id)",
    )
    .replace(
        "OLD.status <> 'pending' AND (NEW.completed_at, NEW.failure_code)",
        "OLD.status <> 'pending' AND (NEW.completed_at, NEW.failure_code, NEW.canceled_by, NEW.canceled_request_id)",
    )
    .replace(
        "DISTINCT FROM (OLD.completed_at, OLD.failure_code)",
        "DISTINCT FROM (OLD.completed_at, OLD.failure_code, OLD.canceled_by, OLD.canceled_request_id)",
    )
)


class Migration(migrations.Migration):
    dependencies = [
        ("refunds", "0003_reversals"),
    ]

    operations = [
        migrations.AddField(
            model_name="refund",
            name="asked_by",
            field=models.CharField(
                blank=True, default="", help_text="As core.origin has it.", max_length=160
            ),
        ),
        migrations.AddField(
            model_name="refund",
            name="asked_request_id",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
        migrations.AddField(
            model_name="refund",
            name="canceled_by",
            field=models.CharField(blank=True, default="", max_length=160),
        ),
        migrations.AddField(
            model_name="refund",
            name="canceled_request_id",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
        migrations.RunSQL(GUARD, BEFORE.GUARD),
    ]
