-- Money of a failed transfer is exactly what it had listed.
CREATE OR REPLACE FUNCTION settlements_check_failed_transfer() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM public.settlements_acquirertransfer AS failed
        JOIN public.settlements_settleditem AS item ON item.transfer_id = failed.id
        WHERE failed.id = NEW.failed_transfer_id AND failed.state = 'failed' AND failed.acquirer = NEW.acquirer
        HAVING sum(item.net_amount) = NEW.difference
    ) THEN
        RAISE EXCEPTION 'question % has not the sum of its failed transfer', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER settlements_check_failed_transfer AFTER INSERT OR UPDATE ON settlements_openquestion
    FOR EACH ROW WHEN (NEW.failed_transfer_id IS NOT NULL)
    EXECUTE FUNCTION settlements_check_failed_transfer();
