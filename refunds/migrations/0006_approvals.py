"""A refund may wait for approval, from when it has a destination; only a rejected one is rejected by staff."""

from importlib import import_module

from django.db import migrations, models

BEFORE = import_module("refunds.migrations.0004_origin")
APPROVED = """    IF NEW.awaiting_approval AND NOT OLD.awaiting_approval AND OLD.route <> '' THEN
        RAISE EXCEPTION 'what is approved does not wait again' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.status = 'completed' AND OLD.status <> 'completed' AND EXISTS (SELECT FROM approvals_approval
            WHERE subject_id = NEW.id AND kind = 'refund' AND status NOT IN ('within_limits', 'approved'))
       OR NEW.failure_code = 'rejected_by_staff' AND NOT EXISTS (SELECT FROM approvals_approval
            WHERE subject_id = NEW.id AND kind = 'refund' AND status = 'rejected') THEN
        RAISE EXCEPTION 'a refund does not end against its approval' USING ERRCODE = 'check_violation';
    END IF;
"""
MOVES = "    IF NEW.status <> OLD.status AND (OLD.status || '>' || NEW.status) NOT IN ("
GUARD = BEFORE.GUARD.replace(MOVES, APPROVED + MOVES)


class Migration(migrations.Migration):
    dependencies = [("approvals", "0002_guard"), ("refunds", "0005_takebacks")]

    operations = [
        migrations.AddField(
            model_name="refund",
            name="awaiting_approval",
            field=models.BooleanField(
                default=False, help_text="A second person decides (`approvals`) whether it goes out."
            ),
        ),
        migrations.AddConstraint(
            model_name="refund",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("awaiting_approval", False),
                    models.Q(("status", "pending"), models.Q(("route", ""), _negated=True)),
                    _connector="OR",
                ),
                name="refund_awaits_approval_with_a_route",
            ),
        ),
        migrations.RunSQL(GUARD, BEFORE.GUARD),
    ]
