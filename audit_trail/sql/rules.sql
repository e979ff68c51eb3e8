-- A record cannot be written without waiting for its link.
CREATE OR REPLACE FUNCTION audit_trail_wait_for_link() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO audit_trail_unchainedrecord (record_id) VALUES (NEW.id);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER audit_trail_wait_for_link AFTER INSERT ON audit_trail_auditrecord
    FOR EACH ROW
    EXECUTE FUNCTION audit_trail_wait_for_link();


CREATE OR REPLACE FUNCTION audit_trail_keep_unchained() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'DELETE' AND EXISTS (SELECT FROM audit_trail_chainlink WHERE record_id = OLD.record_id) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'an unchained record waits for its link' USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE OR REPLACE TRIGGER audit_trail_keep_unchained BEFORE DELETE OR UPDATE ON audit_trail_unchainedrecord
    FOR EACH ROW
    EXECUTE FUNCTION audit_trail_keep_unchained();


-- Links are numbered without gaps, and each one names the hash before it. With two writers at once the unique
-- number lets one of them in.
CREATE OR REPLACE FUNCTION audit_trail_link_follows() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    head audit_trail_chainlink;
BEGIN
    SELECT * INTO head FROM audit_trail_chainlink ORDER BY number DESC LIMIT 1;
    IF NEW.number <> coalesce(head.number, 0) + 1 OR NEW.previous_hash <> coalesce(head.hash, '') THEN
        RAISE EXCEPTION 'a link follows the newest one' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER audit_trail_link_follows BEFORE INSERT ON audit_trail_chainlink
    FOR EACH ROW
    EXECUTE FUNCTION audit_trail_link_follows();
