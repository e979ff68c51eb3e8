-- Each write-off has an approval of its own: it was within the limits, or a second person approved it.
CREATE OR REPLACE FUNCTION reconciliation_check_write_off() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF (SELECT count(*) FROM reconciliation_resolution WHERE subject_id = NEW.subject_id AND type = 'written_off')
       > (SELECT count(*) FROM approvals_approval AS approval
            JOIN reconciliation_banktransaction AS bank_transaction ON bank_transaction.id = approval.subject_id
            WHERE approval.subject_id = NEW.subject_id AND approval.kind = 'write_off'
                AND approval.status IN ('within_limits', 'approved') AND approval.amount = bank_transaction.amount) THEN
        RAISE EXCEPTION '% has no approval to be written off', NEW.subject_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_check_write_off AFTER INSERT ON reconciliation_resolution
    FOR EACH ROW WHEN (NEW.type = 'written_off')
    EXECUTE FUNCTION reconciliation_check_write_off();


-- The ledger books a loss only for a write-off, and of its amount.
CREATE OR REPLACE FUNCTION reconciliation_check_loss() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM reconciliation_resolution AS resolution
        JOIN reconciliation_banktransaction AS bank_transaction ON bank_transaction.id = resolution.subject_id
        WHERE resolution.ledger_subject_id = NEW.subject_id AND resolution.type = 'written_off'
            AND bank_transaction.amount = NEW.amount
    ) THEN
        RAISE EXCEPTION 'nobody wrote off %', NEW.subject_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS reconciliation_check_loss ON ledger_journal;
CREATE CONSTRAINT TRIGGER reconciliation_check_loss AFTER INSERT ON ledger_journal DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.type = 'written_off')
    EXECUTE FUNCTION reconciliation_check_loss();


-- A return that staff sent manually is completed only with an approval. Others have an order, which needs one.
CREATE OR REPLACE FUNCTION reconciliation_check_manual_return() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM approvals_approval WHERE subject_id = NEW.id AND kind = 'return_by_hand'
            AND status IN ('within_limits', 'approved') AND amount = NEW.amount
    ) THEN
        RAISE EXCEPTION 'return % has no approval', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER reconciliation_check_manual_return BEFORE UPDATE OF status ON reconciliation_return
    FOR EACH ROW WHEN (NEW.is_manual AND NEW.status = 'completed' AND OLD.status <> 'completed')
    EXECUTE FUNCTION reconciliation_check_manual_return();
