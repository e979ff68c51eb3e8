"""What a second person approves of withdrawals is kept by `approvals`: what was decided before moves there."""

from importlib import import_module

from django.db import migrations, models

BEFORE = import_module("withdrawals.migrations.0002_guard_moves")
APPROVALS = """
INSERT INTO approvals_approval (id, kind, subject_id, merchant_id, amount, bank_code, account_last4, account_name,
    status, reason, requested_by, request_id, requested_at, note, decided_by, decided_at, why)
SELECT 'apr_' || substr(withdrawal.id, 4), 'withdrawal', withdrawal.id, withdrawal.merchant_id, amount, bank_code,
    account_last4, account_name, CASE WHEN needs_approval THEN 'waiting' ELSE 'within_limits' END,
    CASE WHEN needs_approval THEN 'item_limit' ELSE '' END, coalesce(asked.actor, ''),
    coalesce(asked.request_id, ''), withdrawal.created_at, '', '', NULL, ''
FROM withdrawals_withdrawal AS withdrawal
LEFT JOIN webhooks_event AS asked ON asked.subject_id = withdrawal.id AND asked.type = 'withdrawal.pending';
UPDATE approvals_approval AS approval SET
    status = CASE
        WHEN decided.decided_at IS NULL THEN 'canceled'
        WHEN decided.failure_code = 'rejected_by_staff' THEN 'rejected'
        ELSE 'approved'
    END,
    decided_by = CASE WHEN decided.decided_by = '' THEN '' ELSE 'staff:' || decided.decided_by END,
    decided_at = coalesce(decided.decided_at, decided.updated_at),
    why = CASE WHEN decided.failure_code = 'rejected_by_staff' THEN 'Reasons were not kept yet.' ELSE '' END
FROM withdrawals_withdrawal AS decided
WHERE decided.id = approval.subject_id AND needs_approval
    AND (decided.decided_at IS NOT NULL OR decided.status = 'canceled');
UPDATE withdrawals_withdrawal SET awaiting_approval = true
WHERE needs_approval AND decided_at IS NULL AND status = 'pending';
"""
# From now on each withdrawal has its order, which is held while it waits. The account was sealed for the
# withdrawal's id, which is the order's id too.
ORDERS = """
CREATE TEMPORARY TABLE ordered ON COMMIT DROP AS
SELECT * FROM withdrawals_withdrawal AS withdrawal
WHERE NOT EXISTS (SELECT FROM transfers_transfer WHERE id = withdrawal.id);
INSERT INTO transfers_transfer (id, purpose, merchant_id, route, amount, bank_code, account_sealed, account_name,
    charge_id, state, due_at, inquiries, bank_reference, failure_code, created_at, settled_by)
SELECT id, 'withdrawal', merchant_id, 'bank:' || bank, amount, bank_code, account_sealed, account_name,
    '', 'held', created_at, 0, '', '', created_at, ''
FROM ordered;
INSERT INTO transfers_step (transfer_id, what, said, actor, request_id, at)
SELECT id, 'held', '', '', '', created_at FROM ordered;
UPDATE transfers_transfer AS transfer SET state = 'canceled', ended_at = ordered.updated_at
FROM ordered WHERE ordered.id = transfer.id AND ordered.status <> 'pending';
INSERT INTO transfers_step (transfer_id, what, said, actor, request_id, at)
SELECT id, 'canceled', '', '', '', updated_at FROM ordered WHERE status <> 'pending';
"""
# ALTER TABLE is refused while foreign keys of changed rows wait to be checked.
JUDGED = "SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED;"
FUNCTION = BEFORE.GUARD.partition("CREATE TRIGGER")[0].replace(
    "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
)
DECIDED = """    IF NEW.decided_at IS NOT NULL AND OLD.decided_at IS NULL AND OLD.status <> 'pending' THEN
        RAISE EXCEPTION 'only what is pending is decided' USING ERRCODE = 'check_violation';
    END IF;
"""
APPROVED = """    IF NEW.awaiting_approval AND NOT OLD.awaiting_approval THEN
        RAISE EXCEPTION 'what is approved does not wait again' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.status = 'processing' AND EXISTS (SELECT FROM approvals_approval
            WHERE subject_id = NEW.id AND kind = 'withdrawal' AND status NOT IN ('within_limits', 'approved')) THEN
        RAISE EXCEPTION 'a withdrawal that nobody approved is not sent' USING ERRCODE = 'check_violation';
    END IF;
"""
REJECTED = """OLD.status = 'pending' AND NOT EXISTS (SELECT FROM approvals_approval
            WHERE subject_id = NEW.id AND kind = 'withdrawal' AND status = 'rejected')"""
GUARD = (
    FUNCTION.replace("NEW.status <> 'pending' OR NEW.decided_at IS NOT NULL", "NEW.status <> 'pending'")
    .replace("born pending and undecided", "born pending")
    .replace("NEW.needs_approval, ", "")
    .replace("OLD.needs_approval, ", "")
    .replace(
        """OLD.decided_at IS NOT NULL AND (NEW.decided_at, NEW.decided_by) IS DISTINCT FROM (OLD.decided_at, OLD.decided_by)
       OR """,
        "",
    )
    .replace(DECIDED, APPROVED)
    .replace("OLD.status = 'pending' AND (OLD.decided_at IS NOT NULL OR NEW.decided_at IS NULL)", REJECTED)
)


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0002_guard"),
        ("transfers", "0009_held"),
        ("webhooks", "0009_causes"),
        ("withdrawals", "0002_guard_moves"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="withdrawal",
            name="awaiting_approval",
            field=models.BooleanField(
                default=False, help_text="A second person decides (`approvals`) whether it goes out."
            ),
        ),
        migrations.RunSQL([APPROVALS, ORDERS, JUDGED], migrations.RunSQL.noop),
        migrations.AlterModelOptions(
            name="withdrawal",
            options={"permissions": [("cancel_withdrawal", "Can cancel withdrawals")]},
        ),
        migrations.RemoveConstraint(model_name="withdrawal", name="withdrawal_decided_by_somebody"),
        migrations.RemoveConstraint(model_name="withdrawal", name="withdrawal_not_sent_unapproved"),
        migrations.RemoveIndex(model_name="withdrawal", name="withdrawal_for_staff"),
        migrations.RemoveField(model_name="withdrawal", name="decided_at"),
        migrations.RemoveField(model_name="withdrawal", name="decided_by"),
        migrations.RemoveField(model_name="withdrawal", name="needs_approval"),
        migrations.AddConstraint(
            model_name="withdrawal",
            constraint=models.CheckConstraint(
                condition=models.Q(("awaiting_approval", False), ("status", "pending"), _connector="OR"),
                name="withdrawal_awaits_approval_while_pending",
            ),
        ),
        migrations.RunSQL(GUARD, FUNCTION),
    ]
