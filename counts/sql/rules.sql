-- Count the rows of a table as a list. `kind` is the SQL expression by which the list is filtered.
-- `owner` is the column that names whose list a row is in, `amount` the expression of its satang.
-- Each list has a function of its own, because PostgreSQL keeps the plans of fixed statements only. It has the
-- rights of the owner, and nobody else can make a trigger with it: so `counts_protect` knows who writes.
CREATE OR REPLACE FUNCTION counts_count_list(
    list_name text, counted regclass, kind text, owner text DEFAULT 'merchant_id', amount text DEFAULT '0'
) RETURNS void
    LANGUAGE plpgsql
    AS $install$
BEGIN
    EXECUTE format($function$
        CREATE OR REPLACE FUNCTION %1$I() RETURNS trigger
            LANGUAGE plpgsql SECURITY DEFINER
            SET search_path = public, pg_temp
            AS $$
        BEGIN
            IF TG_OP = 'INSERT' THEN
                -- Most statements insert one row, and to group it would take twice as long as the rest.
                INSERT INTO counts_countdelta (list, owner_id, kind, minute, delta, amount)
                SELECT %2$L, %5$I, %3$s, date_trunc('minute', created_at, 'UTC'), 1, %6$s FROM after;
            ELSIF TG_OP = 'UPDATE' THEN
                INSERT INTO counts_countdelta (list, owner_id, kind, minute, delta, amount)
                SELECT %2$L, %5$I, %3$s, date_trunc('minute', created_at, 'UTC'), sum(delta), sum(delta * %6$s)
                FROM (SELECT *, 1 AS delta FROM after UNION ALL SELECT *, -1 FROM before) AS both_ways
                GROUP BY 2, 3, 4 HAVING sum(delta) <> 0 OR sum(delta * %6$s) <> 0;
            ELSE
                INSERT INTO counts_countdelta (list, owner_id, kind, minute, delta, amount)
                SELECT %2$L, %5$I, %3$s, date_trunc('minute', created_at, 'UTC'), -1, -%6$s FROM before;
            END IF;
            RETURN NULL;
        END $$;
        REVOKE ALL ON FUNCTION %1$I() FROM PUBLIC;

        CREATE OR REPLACE TRIGGER count_inserted AFTER INSERT ON %4$s
            REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION %1$I();
        CREATE OR REPLACE TRIGGER count_updated AFTER UPDATE ON %4$s
            REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION %1$I();
        CREATE OR REPLACE TRIGGER count_deleted AFTER DELETE ON %4$s
            REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION %1$I();
    $function$, 'counts_count_' || list_name, list_name, kind, counted, owner, amount);
END $install$;


CREATE OR REPLACE FUNCTION counts_roll_up() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp
    AS $$
DECLARE
    zeros bigint[];
BEGIN
    WITH added AS (
        SELECT list, owner_id, kind, minute, sum(delta) AS count, sum(amount) AS amount
        FROM gone GROUP BY 1, 2, 3, 4
    ), changed AS (
        INSERT INTO counts_listcount AS current (list, owner_id, kind, bucket, starts_at, count, amount)
        SELECT list, owner_id, kind, bucket, date_trunc(bucket, minute, 'UTC'), sum(count), sum(amount)
        FROM (
            SELECT added.*, bucket FROM added, unnest(ARRAY['month', 'day', 'hour', 'minute']) AS bucket
            UNION ALL
            -- All merchants together, for the console: live and test money apart.
            SELECT list, mode COLLATE "C", kind, minute, count, amount, bucket
            FROM added JOIN merchants_merchant AS merchant ON merchant.id = owner_id,
                unnest(ARRAY['month', 'day', 'hour']) AS bucket
        ) AS listed
        GROUP BY 1, 2, 3, 4, 5 HAVING sum(count) <> 0 OR sum(amount) <> 0 ORDER BY 1, 2, 3, 4, 5
        ON CONFLICT (owner_id, list, bucket, starts_at, kind)
            DO UPDATE SET count = current.count + EXCLUDED.count, amount = current.amount + EXCLUDED.amount
        RETURNING id, count
    )
    SELECT array_agg(id) INTO zeros FROM changed WHERE count = 0;
    -- Each payment is pending for a while: without this its counts of nothing would stay for ever.
    DELETE FROM counts_listcount WHERE id = ANY(zeros);
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION counts_roll_up() FROM PUBLIC;

CREATE OR REPLACE TRIGGER counts_roll_up AFTER DELETE ON counts_countdelta
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
    EXECUTE FUNCTION counts_roll_up();


CREATE OR REPLACE FUNCTION counts_protect() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- The functions above run as the owner of the table. A trigger of somebody else does not, such as one of a
    -- temporary table. Depth 1 is this trigger alone: a mistake of the owner.
    IF TG_OP = 'TRUNCATE' OR pg_trigger_depth() < 2
       OR current_user <> (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = TG_RELID) THEN
        RAISE EXCEPTION 'only triggers change the counts' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER counts_protect BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON counts_listcount
    FOR EACH STATEMENT
    EXECUTE FUNCTION counts_protect();

CREATE OR REPLACE TRIGGER counts_protect BEFORE INSERT OR UPDATE OR TRUNCATE ON counts_countdelta
    FOR EACH STATEMENT
    EXECUTE FUNCTION counts_protect();


-- Rows are inserted and deleted all the time: vacuum after a number of changes, not after a share of the table.
ALTER TABLE counts_countdelta SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
