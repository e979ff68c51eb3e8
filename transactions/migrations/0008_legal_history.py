"""Rows of the history move only as refunds and payments do, and have no status that their type cannot have."""

from django.db import migrations, models
from django.db.models import Q

# A row that stays as it is does not move.
GUARD = """
CREATE OR REPLACE FUNCTION transactions_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR (to_jsonb(NEW) - 'status') IS DISTINCT FROM (to_jsonb(OLD) - 'status')
        OR NEW.status <> OLD.status AND (OLD.status, NEW.status) NOT IN (
            ('pending', 'succeeded'), ('pending', 'failed'), ('succeeded', 'refunded')
        )
    THEN
        RAISE EXCEPTION 'history is not rewritten' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
"""
UNGUARD = """
CREATE OR REPLACE FUNCTION transactions_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR (to_jsonb(NEW) - 'status') IS DISTINCT FROM (to_jsonb(OLD) - 'status') THEN
        RAISE EXCEPTION 'history is not rewritten' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("transactions", "0007_count_history")]
    operations = [
        # Millions of rows are looked at, which takes longer than a request may.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="transaction",
            constraint=models.CheckConstraint(
                condition=Q(type="payment", status__in=["succeeded", "refunded"])
                | Q(type="failed", status="failed")
                | Q(type="refund", status__in=["pending", "succeeded", "failed"]),
                name="transaction_status_fits_type",
            ),
        ),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
