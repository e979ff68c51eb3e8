"""The books balance and are written once, whoever writes: judged at the commit, when a posting is whole."""

from django.db import migrations

GUARD = """
CREATE FUNCTION ledger_balanced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    judged bigint := to_jsonb(NEW) ->> TG_ARGV[0];
BEGIN
    -- The amount of the journal also refuses a pair of lines that balance and come later.
    IF (
        SELECT count(*) >= 2 AND sum(entry.amount) = 0
            AND sum(entry.amount) FILTER (WHERE entry.amount > 0) = min(journal.amount)
            AND bool_and(entry.created_at = journal.created_at)
        FROM transactions_journal AS journal JOIN transactions_entry AS entry ON entry.journal_id = journal.id
        WHERE journal.id = judged
    ) IS NOT TRUE THEN
        RAISE EXCEPTION 'the lines of journal % do not balance', judged USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER ledger_balanced AFTER INSERT ON transactions_journal
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ledger_balanced('id');
CREATE CONSTRAINT TRIGGER ledger_balanced AFTER INSERT ON transactions_entry
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ledger_balanced('journal_id');

CREATE FUNCTION ledger_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the books are not rewritten' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER ledger_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON transactions_journal
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_kept();
CREATE TRIGGER ledger_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON transactions_entry
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_kept();
CREATE TRIGGER ledger_kept BEFORE UPDATE OF id, kind, merchant_id OR DELETE OR TRUNCATE ON transactions_account
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_kept();
CREATE TRIGGER ledger_kept BEFORE UPDATE OR TRUNCATE ON transactions_unfolded
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_kept();
CREATE TRIGGER ledger_kept BEFORE TRUNCATE ON transactions_transaction
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_kept();
"""
UNGUARD = """
DROP TRIGGER ledger_kept ON transactions_transaction;
DROP TRIGGER ledger_kept ON transactions_unfolded;
DROP TRIGGER ledger_kept ON transactions_account;
DROP TRIGGER ledger_kept ON transactions_entry;
DROP TRIGGER ledger_kept ON transactions_journal;
DROP FUNCTION ledger_kept();
DROP TRIGGER ledger_balanced ON transactions_entry;
DROP TRIGGER ledger_balanced ON transactions_journal;
DROP FUNCTION ledger_balanced();
"""

# Its rows come and go by the second: clean up by count, not by the share of a table that is mostly empty.
TIDY = """
ALTER TABLE transactions_unfolded SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
"""
UNTIDY = """
ALTER TABLE transactions_unfolded RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
"""


class Migration(migrations.Migration):
    dependencies = [("transactions", "0003_ledger")]
    operations = [migrations.RunSQL(GUARD, UNGUARD), migrations.RunSQL(TIDY, UNTIDY)]
