SELECT counts_count_list('links', 'links_paymentlink', 'status');


-- A code belongs to a payment of the link's merchant and of an amount that the link allows. There is none of a link that has
-- ended, nor a second one that its visitor could pay. A look after the statement, because one statement inserts all rows.
CREATE OR REPLACE FUNCTION links_check_code() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    link links_paymentlink;
    payment payments_payment;
BEGIN
    SELECT * INTO link FROM public.links_paymentlink WHERE id = NEW.link_id;
    SELECT * INTO payment FROM public.payments_payment WHERE id = NEW.payment_id;
    IF (payment.payment_link_id = link.id AND payment.merchant_id = link.merchant_id AND payment.qr_code_id IS NOT NULL
        AND payment.amount BETWEEN coalesce(link.amount, link.amount_min) AND coalesce(link.amount, link.amount_max)
    ) IS NOT TRUE THEN
        RAISE EXCEPTION 'the payment is not of this link' USING ERRCODE = 'check_violation';
    END IF;
    IF link.status <> 'active' OR link.expires_at <= payment.created_at OR link.max_payments <= link.payments THEN
        RAISE EXCEPTION 'the link has ended' USING ERRCODE = 'check_violation', CONSTRAINT = 'linkcode_of_active_link';
    END IF;
    IF NEW.number > 1 AND (
        SELECT before.status <> 'pending' OR before.expires_at <= payment.created_at
        FROM public.links_linkcode AS code JOIN public.payments_payment AS before ON before.id = code.payment_id
        WHERE code.link_id = NEW.link_id AND code.visitor = NEW.visitor AND code.number = NEW.number - 1
    ) IS NOT TRUE OR NEW.number < 1 THEN
        RAISE EXCEPTION 'the visitor has an open code' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER links_check_code AFTER INSERT ON links_linkcode
    FOR EACH ROW EXECUTE FUNCTION links_check_code();


-- Which then knows the link.
CREATE OR REPLACE FUNCTION links_check_payment() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM public.links_linkcode WHERE payment_id = NEW.id AND link_id = NEW.payment_link_id) THEN
        RAISE EXCEPTION 'no visitor of this link made the payment' USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER links_check_payment AFTER INSERT ON payments_payment
    FOR EACH ROW WHEN (NEW.payment_link_id IS NOT NULL) EXECUTE FUNCTION links_check_payment();


-- Count in the commit of the success. A payment that was paid never becomes unpaid. The lock of the link comes after that of
-- the payment.
CREATE OR REPLACE FUNCTION links_count_payment() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp
    AS $$
BEGIN
    IF NEW.status = 'succeeded' AND OLD.status NOT IN ('succeeded', 'refunded') THEN
        UPDATE links_paymentlink SET payments = payments + 1 WHERE id = NEW.payment_link_id;
    END IF;
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION links_count_payment() FROM PUBLIC;

CREATE OR REPLACE TRIGGER links_count_payment AFTER UPDATE OF status ON payments_payment
    FOR EACH ROW WHEN (NEW.payment_link_id IS NOT NULL) EXECUTE FUNCTION links_count_payment();
