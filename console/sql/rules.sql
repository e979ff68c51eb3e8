-- Staff acts are records of audit_trail. Django's own log stays empty, so that there is one record.
CREATE OR REPLACE FUNCTION console_no_log() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'what staff do is recorded in audit_trail' USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE OR REPLACE TRIGGER console_no_log BEFORE INSERT ON django_admin_log
    FOR EACH ROW
    EXECUTE FUNCTION console_no_log();


CREATE OR REPLACE FUNCTION console_keep_staff() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'staff are deactivated, never deleted' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.username IS DISTINCT FROM OLD.username OR NEW.id <> OLD.id THEN
        RAISE EXCEPTION 'the name of a member of staff stays' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER console_keep_staff BEFORE DELETE OR UPDATE ON auth_user
    FOR EACH ROW
    EXECUTE FUNCTION console_keep_staff();
