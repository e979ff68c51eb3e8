CREATE OR REPLACE TRIGGER merchants_check_open BEFORE INSERT ON payments_payment
    FOR EACH ROW EXECUTE FUNCTION merchants_check_open();


CREATE OR REPLACE FUNCTION payments_protect_bank() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM payments_payment WHERE merchant_id = OLD.id AND qr_code_id IS NOT NULL) THEN
        RAISE EXCEPTION 'a merchant that has made codes keeps its bank and its biller id' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER payments_protect_bank BEFORE UPDATE OF bank, biller_id ON merchants_merchant
    FOR EACH ROW WHEN (OLD.bank <> '' AND (NEW.bank IS DISTINCT FROM OLD.bank OR NEW.biller_id IS DISTINCT FROM OLD.biller_id))
    EXECUTE FUNCTION payments_protect_bank();


SELECT counts_count_list(
    'payments', 'payments_payment', 'status', amount => 'amount',
    all_kinds => $$status IN ('pending', 'succeeded', 'failed', 'expired', 'refunded')$$
);
