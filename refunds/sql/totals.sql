-- What a payment says of its refunds, at each commit: a refund and the totals change by two statements. A refund that
-- ends without them only leaves less to refund, so the end is not looked at.
CREATE OR REPLACE FUNCTION refunds_check_totals() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE changed text;
BEGIN
    IF TG_TABLE_NAME = 'refunds_refund' THEN changed := NEW.payment_id; ELSE changed := NEW.id; END IF;
    IF EXISTS (
        SELECT FROM public.payments_payment AS payment, LATERAL (
            SELECT coalesce(sum(amount) FILTER (WHERE status = 'completed'), 0) AS refunded,
                coalesce(sum(amount) FILTER (WHERE status = 'pending'), 0) AS refunding
            FROM public.refunds_refund WHERE payment_id = payment.id
        ) AS refund
        WHERE payment.id = changed AND (amount_refunded <> refunded OR amount_refunding <> refunding)
    ) THEN
        RAISE EXCEPTION 'the refund totals of payment % are not those of its refunds', changed
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS refunds_check_totals ON payments_payment;
CREATE CONSTRAINT TRIGGER refunds_check_totals AFTER UPDATE OF amount_refunded, amount_refunding ON payments_payment DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (
        OLD.amount_refunded <> NEW.amount_refunded OR OLD.amount_refunding <> NEW.amount_refunding
    )
    EXECUTE FUNCTION refunds_check_totals();

DROP TRIGGER IF EXISTS refunds_check_totals ON refunds_refund;
CREATE CONSTRAINT TRIGGER refunds_check_totals AFTER INSERT ON refunds_refund DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION refunds_check_totals();


CREATE OR REPLACE FUNCTION refunds_check_reversal() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (
        SELECT FROM public.refunds_refundreversal AS reversal
        WHERE reversal.reversal_id = NEW.reversal_id AND refunded_amount <> (
            SELECT coalesce(sum(amount), 0) FROM public.refunds_refund AS refund
            WHERE refund.reversal_id = NEW.reversal_id
        )
    ) THEN
        RAISE EXCEPTION 'the refunded amount of reversal % is not that of its refunds', NEW.reversal_id
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS refunds_check_reversal ON refunds_refundreversal;
CREATE CONSTRAINT TRIGGER refunds_check_reversal AFTER INSERT OR UPDATE ON refunds_refundreversal
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.refunded_amount <> 0)
    EXECUTE FUNCTION refunds_check_reversal();
