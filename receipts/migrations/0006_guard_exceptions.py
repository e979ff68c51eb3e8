"""The database keeps what may become of a receipt and of money on its way back, and that the rest never changes.

What was judged while money that waits had no account of its own is judged again, by the sweep: then it is posted.
"""

from importlib import import_module

from django.db import migrations

BEFORE = import_module("receipts.migrations.0003_reseal")

JUDGE_AGAIN = """
UPDATE receipts_receipt SET outcome = '', judged_at = NULL, payment_id = NULL, merchant_id = NULL
WHERE outcome IN ('unmatched', 'duplicate', 'amount_mismatch', 'late', 'reversed');
"""
GUARD = """
CREATE OR REPLACE FUNCTION receipts_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    free text[] := CASE TG_TABLE_NAME
        WHEN 'receipts_receipt' THEN
            '{outcome,judged_at,payment_id,merchant_id,resolution,resolved_at,also_known_as}'
        WHEN 'receipts_return' THEN '{status,bank_reference,failure_code,completed_at,returned_at}'
        WHEN 'receipts_statement' THEN '{ended_at}'
        WHEN 'receipts_statementline' THEN '{result,receipt_id}'
        ELSE '{}'
    END;
BEGIN
    IF current_setting('qr.resealing', true) = 'on' THEN
        free := '{payer_account_sealed,body_sealed,line_sealed}';
    END IF;
    IF TG_OP = 'DELETE' OR (to_jsonb(NEW) - free) IS DISTINCT FROM (to_jsonb(OLD) - free) THEN
        RAISE EXCEPTION 'the word of a bank is kept as it was said' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION receipts_guard_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.outcome <> OLD.outcome AND OLD.outcome <> ''
       AND NOT (OLD.kind = 'reversal' AND OLD.outcome = 'unmatched' AND NEW.outcome = 'reversed') THEN
        RAISE EXCEPTION 'a receipt is judged once' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.resolution <> OLD.resolution AND (OLD.resolution || '>' || NEW.resolution) NOT IN (
        '>accepted', '>attached', '>sending_back', '>sent_back', '>taken_back', '>dismissed',
        'sending_back>', 'sending_back>sent_back', 'sending_back>taken_back', 'sent_back>'
    ) THEN
        RAISE EXCEPTION 'a receipt cannot go from % to %', OLD.resolution, NEW.resolution
            USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.outcome = OLD.outcome AND (NEW.payment_id, NEW.merchant_id) IS DISTINCT FROM (OLD.payment_id, OLD.merchant_id)
       AND NOT (OLD.resolution = '' AND NEW.resolution = 'attached') THEN
        RAISE EXCEPTION 'a receipt does not change its payment' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.also_known_as <> OLD.also_known_as AND (OLD.also_known_as <> '' OR OLD.source <> 'statement') THEN
        RAISE EXCEPTION 'a receipt keeps its name' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER receipts_guard_moves BEFORE UPDATE ON receipts_receipt
    FOR EACH ROW EXECUTE FUNCTION receipts_guard_moves();

CREATE FUNCTION receipts_guard_return() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NOT EXISTS (SELECT FROM receipts_receipt WHERE id = NEW.receipt_id AND kind = 'credit'
                AND amount = NEW.amount AND outcome IN ('unmatched', 'duplicate', 'amount_mismatch', 'late')) THEN
            RAISE EXCEPTION 'only what waits goes back, and all of it' USING ERRCODE = 'check_violation';
        END IF;
    ELSIF NEW.status <> OLD.status AND (OLD.status || '>' || NEW.status) NOT IN (
        'pending>completed', 'pending>failed', 'pending>canceled'
    ) OR OLD.returned_at IS NOT NULL AND NEW.returned_at IS DISTINCT FROM OLD.returned_at
      OR OLD.status <> 'pending' AND NEW.completed_at IS DISTINCT FROM OLD.completed_at THEN
        RAISE EXCEPTION 'how a return ended never changes' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER receipts_guard_return BEFORE INSERT OR UPDATE ON receipts_return
    FOR EACH ROW EXECUTE FUNCTION receipts_guard_return();

CREATE FUNCTION receipts_guard_line() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.result <> '' AND (NEW.result, NEW.receipt_id) IS DISTINCT FROM (OLD.result, OLD.receipt_id) THEN
        RAISE EXCEPTION 'a line of a statement is joined once' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER receipts_guard_line BEFORE UPDATE ON receipts_statementline
    FOR EACH ROW EXECUTE FUNCTION receipts_guard_line();
"""
KEPT = ["act", "return", "statement", "statementline", "inquiryanswer", "slipcheck"]
KEEP = "".join(
    f"""
CREATE TRIGGER receipts_guard BEFORE UPDATE OR DELETE ON receipts_{table}
    FOR EACH ROW EXECUTE FUNCTION receipts_guard();
CREATE TRIGGER receipts_kept BEFORE TRUNCATE ON receipts_{table}
    FOR EACH STATEMENT EXECUTE FUNCTION receipts_kept();
"""
    for table in KEPT
)
UNKEEP = "".join(
    f"DROP TRIGGER receipts_guard ON receipts_{table}; DROP TRIGGER receipts_kept ON receipts_{table};"
    for table in KEPT
)
UNGUARD = f"""
DROP TRIGGER receipts_guard_line ON receipts_statementline;
DROP FUNCTION receipts_guard_line();
DROP TRIGGER receipts_guard_return ON receipts_return;
DROP FUNCTION receipts_guard_return();
DROP TRIGGER receipts_guard_moves ON receipts_receipt;
DROP FUNCTION receipts_guard_moves();
{BEFORE.GUARD}
"""


class Migration(migrations.Migration):
    dependencies = [("receipts", "0005_exceptions")]
    operations = [
        migrations.RunSQL(JUDGE_AGAIN, migrations.RunSQL.noop),
        migrations.RunSQL(GUARD, UNGUARD),
        migrations.RunSQL(KEEP, UNKEEP),
    ]
