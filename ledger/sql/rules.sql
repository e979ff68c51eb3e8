SELECT counts_count_list(
    'balance', 'ledger_balancetransaction', 'type', amount => 'amount',
    all_kinds => $$type IN (
        'payment', 'unconfirmed_payment', 'confirmed', 'reversal', 'unconfirmed_reversal',
        'unsettled_payment', 'fee', 'unsettled_fee', 'fee_added', 'fee_returned', 'settled', 'unsettled',
        'refund_reserved', 'refund_paid', 'refund_released', 'refund_returned',
        'withdrawal_reserved', 'withdrawal_paid', 'withdrawal_released', 'withdrawal_returned'
    )$$
);

-- The rules name the schema of their tables, because a temporary table with the same name would come first.

-- An entry comes with its journal, in one statement: both rows have the same xmin and cmin then.
CREATE OR REPLACE FUNCTION ledger_check_journal() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM public.ledger_entry AS entry JOIN public.ledger_journal AS journal ON journal.id = journal_id
        WHERE entry.id = NEW.id AND entry.xmin = journal.xmin AND entry.cmin = journal.cmin
    ) THEN
        RAISE EXCEPTION 'an entry without a new journal' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER ledger_check_journal AFTER INSERT ON ledger_entry
    FOR EACH ROW
    EXECUTE FUNCTION ledger_check_journal();


-- Its plan is kept, and must not read all accounts for a few lines.
CREATE OR REPLACE FUNCTION ledger_check_balance() RETURNS trigger
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
    -- Two lines or more of different accounts that exist.
    IF (
        SELECT count(*) >= 2 AND count((SELECT id FROM public.ledger_account WHERE id = account_id)) = count(*)
            AND count(DISTINCT account_id) = count(*)
            AND sum(amount) = 0 AND sum(amount) FILTER (WHERE amount > 0) = NEW.amount
            AND bool_and(created_at = NEW.created_at)
        FROM public.ledger_entry WHERE journal_id = NEW.id
    ) IS NOT TRUE THEN
        RAISE EXCEPTION 'the lines of journal % do not balance', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

-- At the commit, when all lines are there.
DROP TRIGGER IF EXISTS ledger_check_balance ON ledger_journal;
CREATE CONSTRAINT TRIGGER ledger_check_balance AFTER INSERT ON ledger_journal DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW
    EXECUTE FUNCTION ledger_check_balance();


CREATE OR REPLACE FUNCTION ledger_separate_sandbox() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (
        SELECT FROM public.ledger_entry AS entry JOIN public.ledger_account AS account ON account.id = account_id
        LEFT JOIN public.merchants_merchant AS merchant ON merchant.id = merchant_id
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


-- Money that only a file reports, and money that an acquirer has not paid, becomes available first.
CREATE OR REPLACE FUNCTION ledger_protect_held() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM public.ledger_journal WHERE id = NEW.journal_id
            AND type IN ('confirmed', 'reversal', 'settled', 'fee')
            AND starts_with(NEW.account_id, 'unsettled:') = (type IN ('settled', 'fee'))
    ) THEN
        RAISE EXCEPTION '% money cannot leave', split_part(NEW.account_id, ':', 1)
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER ledger_protect_held AFTER INSERT ON ledger_entry
    FOR EACH ROW WHEN (NEW.amount < 0 AND (starts_with(NEW.account_id, 'unconfirmed:')
        OR starts_with(NEW.account_id, 'unsettled:')))
    EXECUTE FUNCTION ledger_protect_held();


-- Rows are added and deleted all the time, so vacuum starts after a fixed number of changes.
ALTER TABLE ledger_pendingentry SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000
);


CREATE OR REPLACE TRIGGER merchants_check_here BEFORE INSERT ON ledger_balancetransaction
    FOR EACH ROW EXECUTE FUNCTION merchants_check_here();


CREATE OR REPLACE TRIGGER merchants_check_exists AFTER INSERT ON ledger_balancetransaction
    FOR EACH ROW EXECUTE FUNCTION merchants_check_exists();
