-- Rows are counted when their period closes: five seconds of their creation. Until then they are read one by one, and
-- a change of them costs nothing here. In this order, each step a transaction:
--   announce  From its commit on, writers append a delta for rows created before `announced`.
--   mark      This transaction takes its number after the announcement, so a writer that did not see it has a lower one.
--   close     When the mark and all lower numbers have ended, count the rows of open periods, less the deltas of writers
--             that saw the announcement: their rows are counted too. From the commit on, readers take counts and deltas.
-- So each row is counted once, no writer waits for another, and a long transaction only delays the closing.
CREATE OR REPLACE FUNCTION counts_period(at timestamptz) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN date_bin('5 seconds', at, '2000-01-01 00:00:00+00');


INSERT INTO counts_countclock (id, closed, announced) VALUES (1, counts_period(now()), counts_period(now()));


CREATE OR REPLACE FUNCTION counts_announced() RETURNS timestamptz
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- With an older snapshot, a transaction could miss an announcement that came before its number.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'counted rows are written at the isolation level "read committed" only';
    END IF;
    RETURN (SELECT announced FROM counts_countclock);
END $$;


-- Only a transaction without a number can mark: with one from before the announcement, a writer that did not see it could
-- have a higher one. The row trigger comes after the lock of the row, for which the transaction has taken its number.
CREATE OR REPLACE FUNCTION counts_begin_step() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM set_config('counts.may_mark', (pg_current_xact_id_if_assigned() IS NULL)::text, true);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER counts_begin_step BEFORE UPDATE ON counts_countclock
    FOR EACH STATEMENT
    EXECUTE FUNCTION counts_begin_step();


CREATE OR REPLACE FUNCTION counts_step() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    first_open timestamptz;
BEGIN
    PERFORM counts_announced();
    -- Whoever calls: periods close whole, and none of the far future. The minute is for tests.
    NEW.target := least(counts_period(NEW.target), counts_period(statement_timestamp() + interval '1 minute'));
    NEW.closed := OLD.closed;
    NEW.announced := OLD.announced;
    NEW.marked_by := OLD.marked_by;
    IF OLD.announced > OLD.closed AND OLD.marked_by < pg_snapshot_xmin(pg_current_snapshot())::text::bigint THEN
        NEW.closed := OLD.announced;
    END IF;
    IF NEW.announced > NEW.closed THEN
        -- A mark of the future is of another server: a database that was restored counts transactions anew.
        IF current_setting('counts.may_mark')::boolean
            AND (OLD.marked_by IS NULL OR OLD.marked_by > pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
        THEN
            NEW.marked_by := pg_current_xact_id()::text::bigint;
        END IF;
    ELSIF NEW.target > NEW.closed THEN
        -- After a pause, a minute at a time, so that no step takes long.
        SELECT min(period) INTO first_open FROM counts_openperiod WHERE period >= NEW.closed;
        NEW.announced := least(NEW.target, first_open + interval '1 minute');
        NEW.marked_by := NULL;
    END IF;
    IF (NEW.closed, NEW.announced, NEW.marked_by) IS NOT DISTINCT FROM (OLD.closed, OLD.announced, OLD.marked_by) THEN
        RETURN NULL;  -- no new version of the row, which each writer reads
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER counts_step BEFORE UPDATE ON counts_countclock
    FOR EACH ROW
    EXECUTE FUNCTION counts_step();


CREATE OR REPLACE FUNCTION counts_forget_periods() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp
    AS $$
BEGIN
    -- The lower bound skips entries of rows that are gone, and that a long snapshot keeps in the index.
    DELETE FROM counts_openperiod WHERE period >= OLD.closed AND period < NEW.closed;
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION counts_forget_periods() FROM PUBLIC;

-- After the triggers `close_...`, in the order of their names.
CREATE OR REPLACE TRIGGER forget_periods AFTER UPDATE ON counts_countclock
    FOR EACH ROW WHEN (NEW.closed > OLD.closed)
    EXECUTE FUNCTION counts_forget_periods();


-- Count the rows of a table as a list. `kind` is the SQL expression by which the list is filtered.
-- `owner` is the column that names whose list a row is in; a row without one is not counted. `amount` is the expression of
-- its satang. `all_kinds` is true of each row: if no index has all rows of an owner in order, it names the values of the
-- columns before `created_at`.
-- Each list has functions of its own, because PostgreSQL keeps the plans of fixed statements only. They have the
-- rights of the owner, and nobody else can make a trigger with them: so `core.database.triggers.WrittenByTriggers`
-- knows who writes. Sequential scans are off, because a plan may be kept from when a table was empty.
CREATE OR REPLACE FUNCTION counts_count_list(
    list_name text, counted regclass, kind text, owner text DEFAULT 'merchant_id', amount text DEFAULT '0',
    all_kinds text DEFAULT 'true'
) RETURNS void
    LANGUAGE plpgsql
    AS $install$
BEGIN
    EXECUTE format($function$
        -- For each row, because most statements insert one: a table of all new rows would take longer to make.
        CREATE OR REPLACE FUNCTION counts_insert_%1$s() RETURNS trigger
            LANGUAGE plpgsql SECURITY DEFINER
            SET search_path = public, pg_temp
            SET enable_seqscan = off
            AS $$
        BEGIN
            IF NEW.created_at < counts_announced() THEN
                INSERT INTO counts_countdelta (list, owner_id, kind, period, delta, amount)
                SELECT %1$L, %4$I, %2$s, counts_period(created_at), 1, %5$s FROM (SELECT NEW.*) AS listed;
            ELSIF NOT EXISTS (
                SELECT FROM counts_openperiod WHERE period = counts_period(NEW.created_at) AND owner_id = NEW.%4$I
            ) THEN
                INSERT INTO counts_openperiod (period, owner_id) VALUES (counts_period(NEW.created_at), NEW.%4$I);
            END IF;
            RETURN NULL;
        END $$;

        CREATE OR REPLACE FUNCTION counts_change_%1$s() RETURNS trigger
            LANGUAGE plpgsql SECURITY DEFINER
            SET search_path = public, pg_temp
            AS $$
        DECLARE
            announced constant timestamptz := counts_announced();
        BEGIN
            IF TG_OP = 'UPDATE' THEN
                INSERT INTO counts_countdelta (list, owner_id, kind, period, delta, amount)
                SELECT %1$L, %4$I, %2$s, counts_period(created_at), sum(delta), sum(delta * %5$s)
                FROM (SELECT *, 1 AS delta FROM after UNION ALL SELECT *, -1 FROM before) AS both_ways
                WHERE created_at < announced
                GROUP BY 2, 3, 4 HAVING sum(delta) <> 0 OR sum(delta * %5$s) <> 0;
            ELSE
                INSERT INTO counts_countdelta (list, owner_id, kind, period, delta, amount)
                SELECT %1$L, %4$I, %2$s, counts_period(created_at), -1, -%5$s FROM before
                WHERE created_at < announced;
            END IF;
            RETURN NULL;
        END $$;

        CREATE OR REPLACE FUNCTION counts_close_%1$s() RETURNS trigger
            LANGUAGE plpgsql SECURITY DEFINER
            SET search_path = public, pg_temp
            SET enable_seqscan = off
            AS $$
        BEGIN
            -- One statement, so rows and deltas are of one moment. Without an open period, an owner has no rows of
            -- writers that missed the announcement: then its deltas are all.
            INSERT INTO counts_countdelta (list, owner_id, kind, period, delta, amount)
            SELECT %1$L, owner_id, found.kind, period, sum(found.delta), sum(found.amount)
            FROM (
                SELECT DISTINCT owner_id, period FROM counts_openperiod
                WHERE period >= OLD.closed AND period < NEW.closed
            ) AS open, LATERAL (
                SELECT * FROM (
                    SELECT %2$s AS kind, 1 AS delta, %5$s AS amount FROM %3$s AS counted
                    WHERE counted.%4$I = open.owner_id AND %6$s AND created_at >= open.period
                        AND created_at < open.period + interval '5 seconds'
                    ORDER BY created_at
                ) AS listed
                UNION ALL
                SELECT kind, -delta, -amount FROM counts_countdelta AS early
                WHERE early.owner_id = open.owner_id AND list = %1$L AND early.period = open.period
            ) AS found
            GROUP BY 2, 3, 4 HAVING sum(found.delta) <> 0 OR sum(found.amount) <> 0;
            RETURN NULL;
        END $$;

        REVOKE ALL ON FUNCTION counts_insert_%1$s(), counts_change_%1$s(), counts_close_%1$s() FROM PUBLIC;

        CREATE OR REPLACE TRIGGER count_inserted AFTER INSERT ON %3$s
            FOR EACH ROW WHEN (NEW.%4$I IS NOT NULL) EXECUTE FUNCTION counts_insert_%1$s();
        CREATE OR REPLACE TRIGGER count_updated AFTER UPDATE ON %3$s
            REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION counts_change_%1$s();
        CREATE OR REPLACE TRIGGER count_deleted AFTER DELETE ON %3$s
            REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION counts_change_%1$s();
        CREATE OR REPLACE TRIGGER close_%1$s AFTER UPDATE ON counts_countclock
            FOR EACH ROW WHEN (NEW.closed > OLD.closed) EXECUTE FUNCTION counts_close_%1$s();
    $function$, list_name, kind, counted, owner, amount, all_kinds);
END $install$;


-- One roll-up after the other: so counts that exist are updated and others inserted. ON CONFLICT would first write a lock
-- of each row to the log, 54 bytes.
CREATE OR REPLACE FUNCTION counts_roll_up() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp
    SET enable_seqscan = off
    SET enable_hashjoin = off
    SET enable_mergejoin = off
    AS $$
DECLARE
    zeros bigint[];
BEGIN
    IF EXISTS (SELECT FROM gone WHERE period >= (SELECT closed FROM counts_countclock)) THEN
        RAISE EXCEPTION 'only closed periods are rolled up' USING ERRCODE = 'insufficient_privilege';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('roll up counts', 0));
    WITH added AS (
        SELECT list, owner_id, kind, date_trunc('minute', period, 'UTC') AS minute,
            sum(delta) AS count, sum(amount) AS amount
        FROM gone GROUP BY 1, 2, 3, 4
    ), change AS (
        SELECT list, owner_id, kind, bucket, date_trunc(bucket, minute, 'UTC') AS starts_at, sum(count) AS count,
            sum(amount) AS amount
        FROM (
            SELECT added.*, bucket FROM added, unnest(ARRAY['month', 'day', 'hour', 'minute']) AS bucket
            UNION ALL
            -- All merchants together, for the console: live and test money apart.
            SELECT list, mode COLLATE "C", kind, minute, count, amount, bucket
            FROM added JOIN merchants_merchant AS merchant ON merchant.id = owner_id,
                unnest(ARRAY['month', 'day', 'hour']) AS bucket
        ) AS listed
        GROUP BY 1, 2, 3, 4, 5 HAVING sum(count) <> 0 OR sum(amount) <> 0
    ), changed AS (
        UPDATE counts_listcount AS current
        SET count = current.count + change.count, amount = current.amount + change.amount
        FROM change
        WHERE (current.owner_id, current.list, current.bucket, current.starts_at, current.kind)
            = (change.owner_id, change.list, change.bucket, change.starts_at, change.kind)
        RETURNING current.id, current.count
    ), made AS (
        INSERT INTO counts_listcount (list, owner_id, kind, bucket, starts_at, count, amount)
        SELECT * FROM change WHERE NOT EXISTS (
            SELECT FROM counts_listcount AS current
            WHERE (current.owner_id, current.list, current.bucket, current.starts_at, current.kind)
                = (change.owner_id, change.list, change.bucket, change.starts_at, change.kind)
        )
        RETURNING id, count
    )
    SELECT array_agg(id) INTO zeros FROM (TABLE changed UNION ALL TABLE made) AS stored WHERE count = 0;
    -- Each payment is pending for a while: without this its counts of nothing would stay for ever.
    DELETE FROM counts_listcount WHERE id = ANY(zeros);
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION counts_roll_up() FROM PUBLIC;

CREATE OR REPLACE TRIGGER counts_roll_up AFTER DELETE ON counts_countdelta
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
    EXECUTE FUNCTION counts_roll_up();


-- Rows are inserted and deleted all the time: vacuum after a number of changes, not after a share of the table.
ALTER TABLE counts_countdelta SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE counts_openperiod SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
