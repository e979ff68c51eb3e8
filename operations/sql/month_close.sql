-- Months are closed in their order, and nothing is posted in a closed month: a later change is of a later month.


CREATE OR REPLACE FUNCTION operations_next_month() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF date_trunc('month', NEW.month) <> NEW.month OR NEW.number > 1 AND NEW.month IS DISTINCT FROM (
        SELECT (month + interval '1 month')::date FROM public.operations_monthclose WHERE number = NEW.number - 1
    ) THEN
        RAISE EXCEPTION 'months are closed in their order' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER operations_next_month BEFORE INSERT ON operations_monthclose
    FOR EACH ROW
    EXECUTE FUNCTION operations_next_month();


-- Once for a statement, which may post hundreds of journals.
CREATE OR REPLACE FUNCTION operations_keep_closed_months() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF (SELECT min(created_at) FROM posted) < (
        SELECT (month + interval '1 month') AT TIME ZONE 'Asia/Bangkok' FROM public.operations_monthclose
        ORDER BY number DESC LIMIT 1
    ) THEN
        RAISE EXCEPTION 'the month of this posting is closed' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER operations_keep_closed_months AFTER INSERT ON ledger_journal
    REFERENCING NEW TABLE AS posted FOR EACH STATEMENT
    EXECUTE FUNCTION operations_keep_closed_months();
