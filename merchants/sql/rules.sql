-- For tables into which each payment writes a row: its merchant exists. A merchant is never deleted and keeps its id,
-- so a look is enough. A foreign key would lock the row of the merchant, and write the lock, for each payment.
CREATE OR REPLACE FUNCTION merchants_check_known() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM public.merchants_merchant WHERE id = NEW.merchant_id) THEN
        RAISE EXCEPTION 'there is no merchant %', NEW.merchant_id USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NEW;
END $$;
