-- When the first code was made in whose place this one stands, if it replaces any: its own time otherwise.
CREATE OR REPLACE FUNCTION qrcodes_first_made_at(code text) RETURNS timestamptz
    LANGUAGE sql STABLE
    AS $$
WITH RECURSIVE chain AS (
    SELECT replaces_id, created_at FROM public.qrcodes_qrcode WHERE payment_id = code
    UNION ALL
    SELECT earlier.replaces_id, earlier.created_at
    FROM chain JOIN public.qrcodes_qrcode AS earlier ON earlier.payment_id = chain.replaces_id
)
SELECT min(created_at) FROM chain
$$;

-- A code is of a payment of its merchant that has a code. Such a payment is never deleted and keeps its merchant, so a look
-- is enough. A foreign key would lock the row of the payment, and write the lock. It is a look after the statement, because
-- one statement inserts both.
CREATE OR REPLACE FUNCTION qrcodes_check_payment() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- By the id alone: a plan that is kept from when the table was empty may read all payments of the merchant.
    IF (
        SELECT merchant_id = NEW.merchant_id AND qr_code_id IS NOT NULL FROM public.payments_payment
        WHERE id = NEW.payment_id
    ) IS NOT TRUE THEN
        RAISE EXCEPTION 'there is no such payment of the code' USING ERRCODE = 'foreign_key_violation';
    END IF;
    IF (
        SELECT (NEW.bank, NEW.biller_id) IN ((m.bank, m.biller_id), (m.standby_bank, m.standby_biller_id))
        FROM public.merchants_merchant AS m WHERE m.id = NEW.merchant_id
    ) IS NOT TRUE THEN
        RAISE EXCEPTION 'a code has a bank and a biller id of its merchant' USING ERRCODE = 'check_violation';
    END IF;
    -- A code takes the place of one that ended unpaid, for the same sum and order, if no later payment of the order succeeded,
    -- for a week from the first code of the order (`services.RENEWABLE_FOR`).
    -- The unique index says: of one at most.
    IF NEW.replaces_id IS NOT NULL THEN
        IF NOT EXISTS (
            SELECT FROM public.payments_payment AS ended, public.payments_payment AS made
            WHERE ended.id = NEW.replaces_id AND made.id = NEW.payment_id AND ended.merchant_id = NEW.merchant_id
                AND ended.qr_code_id IS NOT NULL AND ended.status IN ('expired', 'failed')
                AND ended.amount = made.amount AND ended.reference = made.reference
                AND made.created_at < public.qrcodes_first_made_at(ended.id) + interval '7 days'
                AND NOT EXISTS (
                    SELECT FROM public.payments_payment AS paid
                    WHERE paid.reference = ended.reference AND paid.merchant_id = ended.merchant_id
                        AND paid.created_at > ended.created_at AND paid.status IN ('succeeded', 'refunded')
                )
        ) THEN
            RAISE EXCEPTION 'this code cannot be replaced' USING ERRCODE = 'check_violation';
        END IF;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER qrcodes_check_payment AFTER INSERT ON qrcodes_qrcode
    FOR EACH ROW
    EXECUTE FUNCTION qrcodes_check_payment();
