"""What a bank took back has a row of its own, so that refunds of it may come in parts."""

import core.columns
import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, Q

GUARD = """
CREATE FUNCTION refunds_takeback_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP IN ('DELETE', 'TRUNCATE') THEN
        RAISE EXCEPTION 'what a bank took back is never deleted' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF (NEW.reversal_id, NEW.payment_id, NEW.amount, NEW.route, NEW.created_at)
            IS DISTINCT FROM (OLD.reversal_id, OLD.payment_id, OLD.amount, OLD.route, OLD.created_at)
       OR NEW.shown < OLD.shown THEN
        RAISE EXCEPTION 'what a bank took back never changes' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refunds_takeback_guard BEFORE UPDATE OR DELETE ON refunds_takeback
    FOR EACH ROW EXECUTE FUNCTION refunds_takeback_guard();
CREATE TRIGGER refunds_takeback_kept BEFORE TRUNCATE ON refunds_takeback
    FOR EACH STATEMENT EXECUTE FUNCTION refunds_takeback_guard();
"""
UNGUARD = """
DROP TRIGGER refunds_takeback_guard ON refunds_takeback;
DROP TRIGGER refunds_takeback_kept ON refunds_takeback;
DROP FUNCTION refunds_takeback_guard();
"""
# What is known of the reversals that there are: the part that refunds show.
KNOWN = """
SET CONSTRAINTS ALL IMMEDIATE;
INSERT INTO refunds_takeback (reversal_id, payment_id, amount, shown, route, created_at)
SELECT reversal_id, payment_id, amount, amount, route, created_at FROM refunds_refund
WHERE reversal_id IS NOT NULL;
SET CONSTRAINTS ALL DEFERRED;
"""
BY_REVERSAL = "refund_by_reversal_is_completed"


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0008_keep_bank"),
        ("refunds", "0004_origin"),
    ]

    operations = [
        migrations.CreateModel(
            name="Takeback",
            fields=[
                (
                    "reversal_id",
                    core.columns.PublicIdKey(
                        db_collation="C",
                        help_text="The receipt that tells of it.",
                        max_length=31,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("amount", models.BigIntegerField(help_text="Satang.")),
                ("shown", models.BigIntegerField(default=0, help_text="Satang of it that refunds show.")),
                ("route", models.CharField(help_text="The bank, such as bank:sandbox.", max_length=30)),
                ("created_at", models.DateTimeField()),
                (
                    "payment",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="takeback",
                        to="payments.payment",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(("shown__gte", 0), ("shown__lte", F("amount"))),
                        name="takeback_shown_within_amount",
                    ),
                    models.CheckConstraint(condition=Q(("amount__gte", 1)), name="takeback_amount_positive"),
                ],
            },
        ),
        migrations.RunSQL(KNOWN, migrations.RunSQL.noop),
        migrations.RunSQL(GUARD, UNGUARD),
        migrations.RemoveConstraint(model_name="refund", name=BY_REVERSAL),
        migrations.RenameField(model_name="refund", old_name="reversal_id", new_name="reversal"),
        migrations.AlterField(
            model_name="refund",
            name="reversal",
            field=models.ForeignKey(
                help_text="By which its bank took the money back itself.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="refunds",
                to="refunds.takeback",
            ),
        ),
        migrations.AddConstraint(
            model_name="refund",
            constraint=models.CheckConstraint(
                condition=Q(
                    ("reversal__isnull", True),
                    Q(("returned_at__isnull", True), ("status", "completed")),
                    _connector="OR",
                ),
                name=BY_REVERSAL,
            ),
        ),
    ]
