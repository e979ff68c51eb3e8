CREATE OR REPLACE FUNCTION console_keep_log() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- A model that is gone takes its content type with it.
    IF TG_OP = 'DELETE' OR to_jsonb(NEW) - 'content_type_id' IS DISTINCT FROM to_jsonb(OLD) - 'content_type_id'
    THEN
        RAISE EXCEPTION 'the log of the console stays as written' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER console_keep_log BEFORE DELETE OR UPDATE ON django_admin_log
    FOR EACH ROW
    EXECUTE FUNCTION console_keep_log();


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
