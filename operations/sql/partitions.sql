-- The application may not change tables. These functions run with the rights of the owner, who made them. They
-- accept only tables that have partitions, and drop only months that have ended. The bounds of a month come from here.
-- They wait for a lock for less than a second, because other statements wait behind them, and because after a second
-- PostgreSQL looks for deadlocks and ends one of those who wait.


-- The column of the months of a table.
CREATE OR REPLACE FUNCTION operations_partition_key(parent regclass) RETURNS name
    LANGUAGE plpgsql STABLE
    SET search_path = public, pg_temp
    AS $$
DECLARE
    key name;
BEGIN
    SELECT attname INTO key
    FROM pg_partitioned_table
        JOIN pg_class ON pg_class.oid = partrelid AND relowner = quote_ident(current_user)::regrole
        JOIN pg_attribute ON attrelid = partrelid AND attnum = partattrs[0]
    WHERE partrelid = parent AND relnamespace = 'public'::regnamespace;
    IF key IS NULL THEN
        RAISE EXCEPTION '% has no partitions', parent USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN key;
END $$;


-- The smallest value of this column in a month. Ids are those of core.ids.
CREATE OR REPLACE FUNCTION operations_month_start(parent regclass, month date) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path = public, pg_temp
    AS $$
DECLARE
    instant constant timestamptz := date_trunc('month', month)::timestamp AT TIME ZONE 'UTC';
    alphabet constant text := '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
    seconds bigint := greatest(extract(epoch FROM instant)::bigint - 1700000000, 0);
    digits text := '';
    prefix constant text := CASE parent::text
        WHEN 'request_log_requestrecord' THEN 'rlg_'
        WHEN 'reconciliation_inquiryanswer' THEN 'pay_'
    END;
BEGIN
    IF prefix IS NULL THEN
        RETURN instant;
    END IF;
    FOR digit IN 1..5 LOOP
        digits := substr(alphabet, (seconds % 62)::integer + 1, 1) || digits;
        seconds := seconds / 62;
    END LOOP;
    RETURN prefix || digits || repeat('0', 22);
END $$;


-- Makes the partition of a month and returns its name. NULL: it exists, or the default partition has rows of it already.
-- They stay there, because rows that others write meanwhile would be refused while they move.
CREATE OR REPLACE FUNCTION operations_make_partition(parent regclass, month date) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp
    SET lock_timeout = '400ms'
    AS $$
DECLARE
    key constant name := operations_partition_key(parent);
    name constant name := parent || to_char(month, '_YYYY_MM');
    lower_bound constant text := operations_month_start(parent, month);
    upper_bound constant text := operations_month_start(parent, (month + interval '1 month')::date);
    has_rows boolean;
BEGIN
    -- The oldest partition has all months until the one of its name.
    IF EXISTS (
        SELECT FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = parent AND (
            relname = name
            OR relname > name AND pg_get_expr(relpartbound, inhrelid) LIKE 'FOR VALUES FROM (MINVALUE)%'
        )
    ) THEN
        RETURN NULL;
    END IF;
    EXECUTE format(
        'SELECT EXISTS (SELECT FROM %1$I WHERE %2$I >= %3$L AND %2$I < %4$L)',
        parent || '_default', key, lower_bound, upper_bound
    ) INTO has_rows;
    IF has_rows THEN
        RAISE WARNING 'The default partition of % has rows of % already.', parent, to_char(month, 'YYYY-MM');
        RETURN NULL;
    END IF;
    -- Other than CREATE TABLE ... PARTITION OF, ATTACH does not lock this table against those who read or write. It locks
    -- the default partition while it reads it, which is empty as long as months are made ahead: for this instant queries
    -- of all months wait. If this table has a foreign key, writes to the other table wait, too.
    EXECUTE format('CREATE TABLE %I (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)', name, parent);
    EXECUTE format(
        'ALTER TABLE %s ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, name, lower_bound, upper_bound
    );
    RETURN name;
END $$;


-- For migrations: makes a new table without rows one that is partitioned by month. Its oldest partition has all months
-- until the next one. Django makes the indexes and foreign keys at the end of the migration, triggers come later, too.
CREATE OR REPLACE FUNCTION operations_partition_by_month(parent name, key name) RETURNS void
    LANGUAGE plpgsql
    SET search_path = public, pg_temp
    AS $$
DECLARE
    has_sequence constant boolean := pg_get_serial_sequence(parent, 'id') IS NOT NULL;
    next_month constant date := (date_trunc('month', now(), 'UTC') AT TIME ZONE 'UTC' + interval '1 month')::date;
BEGIN
    EXECUTE format('ALTER TABLE %I RENAME TO unpartitioned', parent);
    ALTER TABLE unpartitioned ALTER id DROP IDENTITY IF EXISTS;
    EXECUTE format(
        'CREATE TABLE %I (LIKE unpartitioned INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE) PARTITION BY RANGE (%I)',
        parent, key
    );
    DROP TABLE unpartitioned;
    EXECUTE format('ALTER TABLE %I ADD PRIMARY KEY (%s)', parent, CASE key WHEN 'id' THEN 'id' ELSE 'id, ' || key END);
    IF has_sequence THEN
        EXECUTE format('ALTER TABLE %I ALTER id ADD GENERATED BY DEFAULT AS IDENTITY', parent);
    END IF;
    EXECUTE format(
        'CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (MINVALUE) TO (%L)', parent || to_char(next_month, '_YYYY_MM'),
        parent, operations_month_start(parent::regclass, (next_month + interval '1 month')::date)
    );
    EXECUTE format('CREATE TABLE %I PARTITION OF %I DEFAULT', parent || '_default', parent);
    PERFORM operations_make_partition(parent::regclass, (next_month + interval '1 month')::date);
END $$;


-- Drops the partitions of the months before this one, and deletes up to 10,000 rows of these months from the default
-- partition. Returns the names of the partitions, and how many rows were deleted.
CREATE OR REPLACE FUNCTION operations_drop_partitions(
    parent regclass, month date, OUT dropped text[], OUT deleted bigint
)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp
    SET lock_timeout = '400ms'
    AS $$
DECLARE
    key constant name := operations_partition_key(parent);
    name text;
BEGIN
    IF month > date_trunc('month', clock_timestamp(), 'UTC') AT TIME ZONE 'UTC' THEN
        RAISE EXCEPTION 'a month is kept until it has ended' USING ERRCODE = 'insufficient_privilege';
    END IF;
    dropped := ARRAY(
        SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = parent AND relname < parent || to_char(month, '_YYYY_MM') AND relname ~ '_\d{4}_\d\d$'
        ORDER BY relname
    );
    FOREACH name IN ARRAY dropped LOOP
        EXECUTE format('DROP TABLE %I', name);
    END LOOP;
    EXECUTE format(
        'DELETE FROM %1$I WHERE ctid = ANY (ARRAY(SELECT ctid FROM %1$I WHERE %2$I < %3$L LIMIT 10000))',
        parent || '_default', key, operations_month_start(parent, month)
    );
    GET DIAGNOSTICS deleted = ROW_COUNT;
END $$;


-- `migrate` lets the application call them.
REVOKE ALL ON FUNCTION operations_make_partition, operations_drop_partitions FROM PUBLIC;
