-- For tables into which each payment writes a row: its merchant exists, and is not suspended. A merchant is never deleted
-- and keeps its id, so a look is enough. A foreign key would lock the row of the merchant, and write the lock, for each
-- payment. So what begins at the same moment as a suspension may still be made; a payout is judged again before it is sent.
CREATE OR REPLACE FUNCTION merchants_check_open() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    is_suspended boolean;
    has_moved boolean;
BEGIN
    SELECT suspended_at IS NOT NULL, moved_at IS NOT NULL INTO is_suspended, has_moved
    FROM public.merchants_merchant WHERE id = NEW.merchant_id;
    IF is_suspended IS NULL THEN
        RAISE EXCEPTION 'there is no merchant %', NEW.merchant_id USING ERRCODE = 'foreign_key_violation';
    ELSIF has_moved THEN
        RAISE EXCEPTION 'merchant % has moved', NEW.merchant_id USING ERRCODE = 'check_violation';
    ELSIF is_suspended THEN
        RAISE EXCEPTION 'merchant % is suspended', NEW.merchant_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;


-- Another instance has the books of a merchant that has moved: here its balance stays, and nothing is sent for it.
CREATE OR REPLACE FUNCTION merchants_check_here() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM public.merchants_merchant WHERE id = NEW.merchant_id AND moved_at IS NOT NULL) THEN
        RAISE EXCEPTION 'merchant % has moved', NEW.merchant_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;


-- The same for rows of what was paid: their merchant exists, and may be suspended meanwhile.
CREATE OR REPLACE FUNCTION merchants_check_exists() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NEW.merchant_id IS NOT NULL AND NOT EXISTS (SELECT FROM public.merchants_merchant WHERE id = NEW.merchant_id) THEN
        RAISE EXCEPTION 'there is no merchant %', NEW.merchant_id USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;


-- A biller id of a bank belongs to one merchant, whether it is the first bank or the stand-by. The lock lets those who connect
-- merchants at the same moment see each other.
CREATE OR REPLACE FUNCTION merchants_check_billers() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('biller ids', 0));
    IF EXISTS (
        SELECT FROM public.merchants_merchant AS m WHERE m.id <> NEW.id AND (
            NEW.standby_bank <> '' AND (m.bank, m.biller_id) = (NEW.standby_bank, NEW.standby_biller_id)
            OR m.standby_bank <> '' AND (m.standby_bank, m.standby_biller_id) = (NEW.bank, NEW.biller_id)
        )
    ) THEN
        RAISE EXCEPTION 'another merchant has this biller id' USING ERRCODE = 'unique_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER merchants_check_billers BEFORE INSERT OR UPDATE OF bank, biller_id, standby_bank, standby_biller_id
    ON merchants_merchant FOR EACH ROW WHEN (NEW.bank NOT IN ('', 'sandbox')) EXECUTE FUNCTION merchants_check_billers();
