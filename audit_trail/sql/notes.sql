-- A hand-over ends with a later note about the same thing.
CREATE OR REPLACE FUNCTION audit_trail_check_answer() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM public.audit_trail_note AS answer
        WHERE answer.id = NEW.answer_id AND answer.id <> NEW.id
            AND answer.subject_id = NEW.subject_id AND answer.created_at >= NEW.created_at
    ) THEN
        RAISE EXCEPTION 'note % has an answer about something else', NEW.id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS audit_trail_check_answer ON audit_trail_note;
CREATE CONSTRAINT TRIGGER audit_trail_check_answer AFTER UPDATE OF answer_id ON audit_trail_note DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.answer_id IS NOT NULL)
    EXECUTE FUNCTION audit_trail_check_answer();


-- The limit of one person. Notes that this person writes at the same time wait for each other.
CREATE OR REPLACE FUNCTION audit_trail_limit_notes() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('notes of ' || NEW.actor, 0));
    IF 60 <= (
        SELECT count(*) FROM public.audit_trail_note
        WHERE actor = NEW.actor AND created_at > NEW.created_at - interval '1 hour'
    ) THEN
        RAISE EXCEPTION '% has written too many notes', NEW.actor USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER audit_trail_limit_notes BEFORE INSERT ON audit_trail_note
    FOR EACH ROW
    EXECUTE FUNCTION audit_trail_limit_notes();
