SELECT counts_count_list('balance', 'ledger_balancetransaction', 'type', amount => 'amount');

CREATE OR REPLACE FUNCTION ledger_check_balance() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    changed_id bigint := to_jsonb(NEW) ->> TG_ARGV[0];
BEGIN
    -- The check of the amount also refuses balanced lines that are added later.
    IF (
        SELECT count(*) >= 2 AND sum(entry.amount) = 0
            AND sum(entry.amount) FILTER (WHERE entry.amount > 0) = min(journal.amount)
            AND bool_and(entry.created_at = journal.created_at)
        FROM ledger_journal AS journal JOIN ledger_entry AS entry ON entry.journal_id = journal.id
        WHERE journal.id = changed_id
    ) IS NOT TRUE THEN
        RAISE EXCEPTION 'the lines of journal % do not balance', changed_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS ledger_check_balance ON ledger_entry;
CREATE CONSTRAINT TRIGGER ledger_check_balance AFTER INSERT ON ledger_entry DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW
    EXECUTE FUNCTION ledger_check_balance('journal_id');

DROP TRIGGER IF EXISTS ledger_check_balance ON ledger_journal;
CREATE CONSTRAINT TRIGGER ledger_check_balance AFTER INSERT ON ledger_journal DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW
    EXECUTE FUNCTION ledger_check_balance('id');


CREATE OR REPLACE FUNCTION ledger_separate_sandbox() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (
        SELECT FROM ledger_entry AS entry JOIN ledger_account AS account ON account.id = account_id
        LEFT JOIN merchants_merchant AS merchant ON merchant.id = merchant_id
        WHERE journal_id = NEW.journal_id AND (
            CASE WHEN merchant_id IS NULL THEN split_part(account_id, ':', 2) = 'sandbox' ELSE mode = 'test' END
        ) <> (NEW.account_id = 'suspense:sandbox')
    ) THEN
        RAISE EXCEPTION 'sandbox money and live money in journal %', NEW.journal_id
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS ledger_separate_sandbox ON ledger_entry;
CREATE CONSTRAINT TRIGGER ledger_separate_sandbox AFTER INSERT ON ledger_entry DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (starts_with(NEW.account_id, 'suspense'))
    EXECUTE FUNCTION ledger_separate_sandbox();


CREATE OR REPLACE FUNCTION ledger_protect_unconfirmed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM ledger_journal WHERE id = NEW.journal_id AND type IN ('confirmed', 'reversal')
    ) THEN
        RAISE EXCEPTION 'unconfirmed money cannot leave' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER ledger_protect_unconfirmed AFTER INSERT ON ledger_entry
    FOR EACH ROW WHEN (NEW.amount < 0 AND starts_with(NEW.account_id, 'unconfirmed:'))
    EXECUTE FUNCTION ledger_protect_unconfirmed();


-- Rows are added and deleted all the time, so vacuum starts after a fixed number of changes.
ALTER TABLE ledger_pendingentry SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000
);
