from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parents[1] / "sql"
# The functions of lists that exist already.
OWNER_COUNTS = """
DO $do$
DECLARE
    list text;
BEGIN
    FOR list IN
        SELECT oid::regprocedure::text FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace AND proname LIKE 'counts\\_count\\_%'
            AND prorettype = 'trigger'::regtype
    LOOP
        EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = public, pg_temp', list);
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', list);
    END LOOP;
END $do$;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('counts', '0001_initial'),
    ]

    operations = [
        migrations.RunSQL((SQL / "rules.sql").read_text()),
        migrations.RunSQL(OWNER_COUNTS),
    ]
