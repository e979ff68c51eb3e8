-- A seal is of the payments that are stored, and of its close. Nothing is added to it later.


CREATE OR REPLACE FUNCTION operations_seal_payments() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    of_merchant constant text := split_part(NEW.id, ':', 2);
    said constant jsonb := NEW.body::jsonb;
    root constant text := encode(substring(NEW.nodes FROM length(NEW.nodes) - 31), 'hex');
    of_close record;
BEGIN
    SELECT number, hash, body::jsonb #> ARRAY['evidence', of_merchant] AS evidence INTO of_close
    FROM public.operations_dailyclose WHERE number = NEW.close_id;
    IF NEW.id IS DISTINCT FROM of_close.number || ':' || of_merchant
        OR of_close.evidence IS DISTINCT FROM jsonb_build_object('payments', NEW.count, 'root', root)
        OR said ->> 'root' IS DISTINCT FROM root OR (said ->> 'payments')::int IS DISTINCT FROM NEW.count
        OR said ->> 'merchant_id' IS DISTINCT FROM of_merchant
        OR said #>> '{close,hash}' IS DISTINCT FROM of_close.hash THEN
        RAISE EXCEPTION 'a seal says what its close says' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.count IS DISTINCT FROM (
        SELECT count(*) FROM public.operations_paymentevidence AS sealed
        WHERE seal_id = NEW.id AND number >= 0 AND number < NEW.count
            AND sha256('\x00'::bytea || convert_to(sealed.text, 'UTF8')) = substring(NEW.nodes FROM number * 32 + 1 FOR 32)
    ) THEN
        RAISE EXCEPTION 'a seal is of its payments' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER operations_seal_payments BEFORE INSERT ON operations_evidenceseal
    FOR EACH ROW
    EXECUTE FUNCTION operations_seal_payments();


CREATE OR REPLACE FUNCTION operations_keep_seals() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM public.operations_evidenceseal WHERE id = NEW.seal_id) THEN
        RAISE EXCEPTION 'nothing is added to a seal' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER operations_keep_seals BEFORE INSERT ON operations_paymentevidence
    FOR EACH ROW
    EXECUTE FUNCTION operations_keep_seals();
