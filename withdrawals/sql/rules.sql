CREATE OR REPLACE TRIGGER merchants_check_open BEFORE INSERT ON withdrawals_withdrawal
    FOR EACH ROW EXECUTE FUNCTION merchants_check_open();


CREATE OR REPLACE FUNCTION withdrawals_check_unreachable() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM transfers_transfer WHERE id = NEW.id AND state = 'canceled') THEN
        RAISE EXCEPTION 'the bank may have the order of %', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER withdrawals_check_unreachable BEFORE UPDATE OF failure_code ON withdrawals_withdrawal
    FOR EACH ROW WHEN (NEW.failure_code = 'bank_unreachable' AND OLD.failure_code IS DISTINCT FROM NEW.failure_code)
    EXECUTE FUNCTION withdrawals_check_unreachable();


CREATE OR REPLACE FUNCTION withdrawals_check_debt() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM FROM ledger_account WHERE id = 'available:' || NEW.merchant_id FOR NO KEY UPDATE;
    IF EXISTS (SELECT FROM ledger_account WHERE id = 'debt:' || NEW.merchant_id AND rolled_up_balance < 0) THEN
        RAISE EXCEPTION 'a merchant with a debt cannot send money' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER withdrawals_check_debt AFTER UPDATE OF state ON transfers_transfer
    FOR EACH ROW WHEN (OLD.state = 'queued' AND NEW.state = 'submitted' AND NEW.purpose = 'withdrawal')
    EXECUTE FUNCTION withdrawals_check_debt();


-- Money leaves only with an approval. A failure names the state in which it can happen.
CREATE OR REPLACE FUNCTION withdrawals_check_approval() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NEW.status = 'processing' AND EXISTS (SELECT FROM approvals_approval
            WHERE subject_id = NEW.id AND kind = 'withdrawal' AND status NOT IN ('within_limits', 'approved')) THEN
        RAISE EXCEPTION 'a withdrawal that nobody approved is not sent' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.status = 'failed' AND OLD.status <> 'failed' AND (
        (OLD.status = 'pending') <> (NEW.failure_code = 'rejected_by_staff')
        OR (OLD.status = 'succeeded') <> (NEW.failure_code = 'returned_by_bank')
        OR OLD.status = 'pending' AND NOT EXISTS (SELECT FROM approvals_approval
            WHERE subject_id = NEW.id AND kind = 'withdrawal' AND status = 'rejected')
    ) THEN
        RAISE EXCEPTION 'a % withdrawal cannot fail like that', OLD.status USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER withdrawals_check_approval BEFORE UPDATE OF status ON withdrawals_withdrawal
    FOR EACH ROW WHEN (NEW.status IN ('processing', 'failed'))
    EXECUTE FUNCTION withdrawals_check_approval();


SELECT counts_count_list('withdrawals', 'withdrawals_withdrawal', 'status', amount => 'amount');


CREATE OR REPLACE TRIGGER merchants_check_here BEFORE INSERT OR UPDATE OF state ON transfers_transfer
    FOR EACH ROW EXECUTE FUNCTION merchants_check_here();
