"""Keep count: every change of the history is noted in its own commit, and what is noted goes into the tallies.

Only triggers write the two tables, so the tallies and what is uncounted always sum to what there is.
"""

from django.db import migrations

# Statement triggers: a bulk load notes one row for each minute, type and status, not one for each row.
KEEP = """
CREATE FUNCTION history_grew() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO transactions_uncounted (merchant_id, minute, type, status, change)
    SELECT merchant_id, date_trunc('minute', created_at, 'UTC'), type, status, count(*)
    FROM added GROUP BY 1, 2, 3, 4;
    RETURN NULL;
END $$;
CREATE TRIGGER history_grew AFTER INSERT ON transactions_transaction
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION history_grew();

CREATE FUNCTION history_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO transactions_uncounted (merchant_id, minute, type, status, change)
    SELECT merchant_id, date_trunc('minute', created_at, 'UTC'), type, status, sum(change)
    FROM (SELECT *, 1 AS change FROM after UNION ALL SELECT *, -1 FROM before) AS both_ways
    GROUP BY 1, 2, 3, 4 HAVING sum(change) <> 0;
    RETURN NULL;
END $$;
CREATE TRIGGER history_changed AFTER UPDATE ON transactions_transaction
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION history_changed();

-- In the order of the key, so that two who add to the same tallies wait for each other in one direction.
CREATE FUNCTION tally_add() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO transactions_tally AS tally (merchant_id, span, begins_at, type, status, count)
    SELECT merchant_id, span, date_trunc(span, minute, 'UTC'), type, status, sum(change)
    FROM gone, unnest(ARRAY['month', 'day', 'hour', 'minute']) AS span
    GROUP BY 1, 2, 3, 4, 5 HAVING sum(change) <> 0 ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (merchant_id, span, begins_at, type, status) DO UPDATE SET count = tally.count + EXCLUDED.count;
    RETURN NULL;
END $$;
CREATE TRIGGER tally_add AFTER DELETE ON transactions_uncounted
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION tally_add();
"""
UNKEEP = """
DROP TRIGGER tally_add ON transactions_uncounted;
DROP FUNCTION tally_add();
DROP TRIGGER history_changed ON transactions_transaction;
DROP FUNCTION history_changed();
DROP TRIGGER history_grew ON transactions_transaction;
DROP FUNCTION history_grew();
"""

# The triggers above hold off writers until the commit, so nothing is counted twice or not at all.
COUNT = """
SET LOCAL statement_timeout = 0;
INSERT INTO transactions_tally (merchant_id, span, begins_at, type, status, count)
WITH minute AS (
    SELECT merchant_id, date_trunc('minute', created_at, 'UTC') AS at, type, status, count(*)
    FROM transactions_transaction GROUP BY 1, 2, 3, 4
)
SELECT merchant_id, span, date_trunc(span, at, 'UTC'), type, status, sum(count)
FROM minute, unnest(ARRAY['month', 'day', 'hour', 'minute']) AS span
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5;
"""
UNCOUNT = "TRUNCATE transactions_tally, transactions_uncounted;"

GUARD = """
CREATE FUNCTION tally_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- One is this trigger itself; two is this trigger within one of those above.
    IF TG_OP = 'TRUNCATE' OR pg_trigger_depth() < 2 THEN
        RAISE EXCEPTION 'tallies are kept by the history alone' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER tally_kept BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON transactions_tally
    FOR EACH STATEMENT EXECUTE FUNCTION tally_kept();
CREATE TRIGGER tally_kept BEFORE INSERT OR UPDATE OR TRUNCATE ON transactions_uncounted
    FOR EACH STATEMENT EXECUTE FUNCTION tally_kept();
"""
UNGUARD = """
DROP TRIGGER tally_kept ON transactions_uncounted;
DROP TRIGGER tally_kept ON transactions_tally;
DROP FUNCTION tally_kept();
"""

# Its rows come and go by the second: clean up by count, not by the share of a table that is mostly empty.
TIDY = """
ALTER TABLE transactions_uncounted SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
"""
UNTIDY = """
ALTER TABLE transactions_uncounted RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
"""


class Migration(migrations.Migration):
    dependencies = [("transactions", "0006_tallies")]
    operations = [
        migrations.RunSQL(KEEP, UNKEEP),
        migrations.RunSQL(COUNT, UNCOUNT),
        migrations.RunSQL(GUARD, UNGUARD),
        migrations.RunSQL(TIDY, UNTIDY),
    ]
