"""Staff are deactivated, never deleted or renamed, and the log of what they did in the console stays as written."""

from django.db import migrations

GUARD = """
CREATE FUNCTION console_keep_staff() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'staff are deactivated, never deleted' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.username IS DISTINCT FROM OLD.username OR NEW.id <> OLD.id THEN
        RAISE EXCEPTION 'the name of a member of staff stays' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER console_keep_staff BEFORE UPDATE OR DELETE ON auth_user
    FOR EACH ROW EXECUTE FUNCTION console_keep_staff();

CREATE FUNCTION console_keep_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A model that is gone takes its content type with it.
    IF TG_OP = 'DELETE' OR to_jsonb(NEW) - 'content_type_id' IS DISTINCT FROM to_jsonb(OLD) - 'content_type_id'
    THEN
        RAISE EXCEPTION 'the log of the console stays as written' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER console_keep_log BEFORE UPDATE OR DELETE ON django_admin_log
    FOR EACH ROW EXECUTE FUNCTION console_keep_log();
"""
UNGUARD = """
DROP TRIGGER console_keep_staff ON auth_user;
DROP FUNCTION console_keep_staff();
DROP TRIGGER console_keep_log ON django_admin_log;
DROP FUNCTION console_keep_log();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0002_loginfailures"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("admin", "0003_logentry_add_action_flag_choices"),
    ]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
