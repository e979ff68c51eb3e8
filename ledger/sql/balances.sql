-- `entries_total` says what `rolled_up_balance` must be at each commit. These two functions have the rights of the
-- owner, and nobody else can make a trigger with them: so `ledger_protect_total` knows who writes.
CREATE OR REPLACE FUNCTION ledger_roll_up() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp
    AS $$
BEGIN
    UPDATE ledger_account AS account SET
        rolled_up_balance = account.rolled_up_balance + added.amount,
        entries_total = account.entries_total + added.amount
    FROM (SELECT account_id, sum(amount) AS amount FROM gone GROUP BY account_id) AS added
    WHERE account.id = added.account_id;
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION ledger_roll_up() FROM PUBLIC;

CREATE OR REPLACE TRIGGER ledger_roll_up AFTER DELETE ON ledger_pendingentry
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
    EXECUTE FUNCTION ledger_roll_up();


CREATE OR REPLACE FUNCTION ledger_add_to_total() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp
    AS $$
BEGIN
    UPDATE ledger_account SET entries_total = entries_total + NEW.amount WHERE id = NEW.account_id;
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION ledger_add_to_total() FROM PUBLIC;

-- The entries that cannot be pending (`pendingentry_only_adds`).
CREATE OR REPLACE TRIGGER ledger_add_to_total AFTER INSERT ON ledger_entry
    FOR EACH ROW WHEN (
        NEW.account_id ~ '^(reserved:|debt:|write_offs)'
        OR NEW.amount < 0 AND NEW.account_id !~ '^(bank|acquirer|fees|fee_vat):'
    )
    EXECUTE FUNCTION ledger_add_to_total();


CREATE OR REPLACE FUNCTION ledger_protect_total() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- A trigger of somebody else, such as one of a temporary table, does not run as the owner of the table.
    -- Depth 1 is this trigger alone: a mistake of the owner.
    IF pg_trigger_depth() < 2
       OR current_user <> (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = TG_RELID) THEN
        RAISE EXCEPTION 'only triggers change the total of the entries' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER ledger_protect_new_total BEFORE INSERT ON ledger_account
    FOR EACH ROW WHEN (NEW.entries_total <> 0)
    EXECUTE FUNCTION ledger_protect_total();

CREATE OR REPLACE TRIGGER ledger_protect_total BEFORE UPDATE ON ledger_account
    FOR EACH ROW WHEN (NEW.entries_total <> OLD.entries_total)
    EXECUTE FUNCTION ledger_protect_total();


CREATE OR REPLACE FUNCTION ledger_check_total() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (
        SELECT FROM public.ledger_account WHERE id = NEW.id AND rolled_up_balance <> entries_total
    ) THEN
        RAISE EXCEPTION 'the balance of % is not the sum of its entries', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

-- At the commit, because one statement of a posting changes the balance, and then its entries the total.
DROP TRIGGER IF EXISTS ledger_check_total ON ledger_account;
CREATE CONSTRAINT TRIGGER ledger_check_total AFTER INSERT OR UPDATE ON ledger_account
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.rolled_up_balance <> NEW.entries_total)
    EXECUTE FUNCTION ledger_check_total();


CREATE OR REPLACE FUNCTION ledger_check_pending_entry() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- Rows of one statement have the same xmin and cmin: an entry that was rolled up cannot be pending again.
    IF NOT EXISTS (
        SELECT FROM public.ledger_pendingentry AS pending JOIN public.ledger_entry AS entry ON entry.id = entry_id
        WHERE (pending.account_id, entry_id) = (NEW.account_id, NEW.entry_id)
            AND entry.xmin = pending.xmin AND entry.cmin = pending.cmin
            AND (entry.account_id, entry.amount) = (pending.account_id, pending.amount)
    ) THEN
        RAISE EXCEPTION 'only a new entry can be pending' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER ledger_check_pending_entry AFTER INSERT ON ledger_pendingentry
    FOR EACH ROW
    EXECUTE FUNCTION ledger_check_pending_entry();
