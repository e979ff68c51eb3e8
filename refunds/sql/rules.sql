-- A refund is of a payment of its merchant, and the history shows it.
CREATE OR REPLACE FUNCTION refunds_check_new() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM payments_payment WHERE id = NEW.payment_id AND merchant_id = NEW.merchant_id) THEN
        RAISE EXCEPTION 'the payment belongs to another merchant' USING ERRCODE = 'foreign_key_violation';
    END IF;
    IF NOT EXISTS (SELECT FROM transactions_transaction WHERE id = NEW.transaction_id AND refund_id = NEW.id
            AND payment_id = NEW.payment_id AND merchant_id = NEW.merchant_id AND amount = -NEW.amount) THEN
        RAISE EXCEPTION 'the transaction belongs to another refund' USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER refunds_check_new BEFORE INSERT ON refunds_refund
    FOR EACH ROW
    EXECUTE FUNCTION refunds_check_new();


-- Money leaves only with an approval, and only staff who rejected a refund make it fail as rejected.
CREATE OR REPLACE FUNCTION refunds_check_approval() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NEW.status = 'completed' AND EXISTS (SELECT FROM approvals_approval
            WHERE subject_id = NEW.id AND kind = 'refund' AND status NOT IN ('within_limits', 'approved'))
       OR NEW.failure_code = 'rejected_by_staff' AND NOT EXISTS (SELECT FROM approvals_approval
            WHERE subject_id = NEW.id AND kind = 'refund' AND status = 'rejected') THEN
        RAISE EXCEPTION 'a refund does not end against its approval' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER refunds_check_approval BEFORE UPDATE OF status, failure_code ON refunds_refund
    FOR EACH ROW WHEN (NEW.status <> OLD.status AND NEW.status = 'completed' OR NEW.failure_code = 'rejected_by_staff')
    EXECUTE FUNCTION refunds_check_approval();


SELECT counts_count_list('refunds', 'refunds_refund', 'status', amount => 'amount');
