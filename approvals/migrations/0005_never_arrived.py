"""An order that staff end as never arrived is judged like outgoing money: its bank may pay it all the same."""

from importlib import import_module

from django.db import migrations, models

BEFORE = import_module("approvals.migrations.0002_guard")
# Nobody else was asked before this rule.
ENDED_BEFORE = """
INSERT INTO approvals_approval (id, kind, subject_id, merchant_id, amount, bank_code, account_last4, account_name,
    status, reason, requested_by, request_id, requested_at, note, decided_by, decided_at, why)
SELECT 'apr_' || substr(md5('never_arrived' || transfer.id), 1, 27), 'never_arrived', transfer.id, merchant.id, amount,
    bank_code, '', account_name, 'within_limits', '', 'staff:' || settled_by, '', ended_at, '', '', NULL, ''
FROM transfers_transfer AS transfer LEFT JOIN merchants_merchant AS merchant ON merchant.id = transfer.merchant_id
WHERE settled_by <> '' AND state = 'failed';
SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED;
"""
# Whether an order may be sent is not decided by a request to end it.
NAME = "approvals_guard_transfer"
SENT_BEFORE = (
    f"CREATE OR REPLACE FUNCTION {NAME}("
    + BEFORE.GUARD.partition(f"FUNCTION {NAME}(")[2].partition("END $$;")[0]
    + "END $$;"
)
SENT = SENT_BEFORE.replace("kind <> 'write_off'", "kind NOT IN ('write_off', 'never_arrived')")
GUARD = """
CREATE FUNCTION approvals_guard_never_arrived() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM approvals_approval
            WHERE subject_id = NEW.id AND kind = 'never_arrived' AND status IN ('within_limits', 'approved')) THEN
        RAISE EXCEPTION 'nobody approved that order % never arrived', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER approvals_guard_never_arrived BEFORE UPDATE ON transfers_transfer
    FOR EACH ROW WHEN (NEW.state = 'failed' AND NEW.settled_by <> '' AND OLD.state <> 'failed')
    EXECUTE FUNCTION approvals_guard_never_arrived();
"""
UNGUARD = """
DROP TRIGGER approvals_guard_never_arrived ON transfers_transfer;
DROP FUNCTION approvals_guard_never_arrived();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0004_guard_issuer"),
        ("merchants", "0004_key_scopes"),
        ("transfers", "0012_answer_amount"),
    ]

    operations = [
        # Constraints of each approval that ever was are judged anew.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.RemoveConstraint(
            model_name="approval",
            name="approval_kind_known",
        ),
        migrations.RemoveConstraint(
            model_name="approval",
            name="approval_once_per_subject",
        ),
        migrations.AlterField(
            model_name="approval",
            name="kind",
            field=models.CharField(
                choices=[
                    ("withdrawal", "Withdrawal"),
                    ("refund", "Refund"),
                    ("return", "Return"),
                    ("return_by_hand", "Return sent by hand"),
                    ("write_off", "Write-off"),
                    ("never_arrived", "Order that never arrived"),
                ],
                max_length=14,
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        ["withdrawal", "refund", "return", "return_by_hand", "write_off", "never_arrived"],
                    )
                ),
                name="approval_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.UniqueConstraint(
                condition=models.Q(("kind__in", ("write_off", "never_arrived")), _negated=True),
                fields=("subject_id",),
                name="approval_once_per_subject",
            ),
        ),
        migrations.RunSQL([ENDED_BEFORE, SENT, GUARD], [UNGUARD, SENT_BEFORE]),
    ]
