CREATE OR REPLACE FUNCTION approvals_check_issuer() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM merchants_apikey
            WHERE public_id = substr(NEW.requested_by, 5) AND issued_by = NEW.decided_by) THEN
        RAISE EXCEPTION 'the person who issued the key cannot decide' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER approvals_check_issuer BEFORE UPDATE ON approvals_approval
    FOR EACH ROW WHEN (NEW.status IN ('approved', 'rejected') AND starts_with(NEW.requested_by, 'key:'))
    EXECUTE FUNCTION approvals_check_issuer();


CREATE OR REPLACE FUNCTION approvals_check_never_arrived() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM approvals_approval
            WHERE subject_id = NEW.id AND kind = 'never_arrived' AND status IN ('within_limits', 'approved')) THEN
        RAISE EXCEPTION 'order % has no approval to end as never arrived', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER approvals_check_never_arrived BEFORE UPDATE ON transfers_transfer
    FOR EACH ROW WHEN (NEW.state = 'failed' AND NEW.completed_by <> '' AND OLD.state <> 'failed')
    EXECUTE FUNCTION approvals_check_never_arrived();


CREATE OR REPLACE FUNCTION approvals_check_transfer() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (SELECT FROM approvals_approval
            WHERE subject_id = NEW.id AND kind NOT IN ('write_off', 'never_arrived')
                AND (status NOT IN ('within_limits', 'approved') OR account_digest <> NEW.account_digest)) THEN
        RAISE EXCEPTION 'an order without approval, or to another account, is not sent' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER approvals_check_transfer BEFORE UPDATE ON transfers_transfer
    FOR EACH ROW WHEN (NEW.state IN ('queued', 'submitted') AND NEW.state <> OLD.state)
    EXECUTE FUNCTION approvals_check_transfer();
