-- The application may not change tables. These functions run with the rights of the owner, who made them. They
-- accept only tables that are partitioned already, and drop only months that have ended. A lock is awaited for a
-- second at most, because other statements wait behind it.


CREATE OR REPLACE FUNCTION operations_partition_key(parent regclass) RETURNS name
    LANGUAGE plpgsql STABLE
    SET search_path = public, pg_temp
    AS $$
DECLARE
    key name;
BEGIN
    SELECT attname INTO key
    FROM pg_partitioned_table
        JOIN pg_class ON pg_class.oid = partrelid AND relowner = current_user::regrole
        JOIN pg_attribute ON attrelid = partrelid AND attnum = partattrs[0]
    WHERE partrelid = parent AND relnamespace = 'public'::regnamespace;
    IF key IS NULL THEN
        RAISE EXCEPTION '% has no partitions', parent USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN key;
END $$;


-- Makes the partition of a month, whose bounds are `first` and `past`. Returns its name, or NULL if it exists.
CREATE OR REPLACE FUNCTION operations_make_partition(parent regclass, month date, first text, past text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp
    SET lock_timeout = '1s'
    AS $$
DECLARE
    key constant name := operations_partition_key(parent);
    made constant name := parent || to_char(month, '_YYYY_MM');
BEGIN
    -- The oldest partition has all months until the one of its name.
    IF EXISTS (
        SELECT FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = parent AND (
            relname = made
            OR relname > made AND pg_get_expr(relpartbound, inhrelid) LIKE 'FOR VALUES FROM (MINVALUE)%'
        )
    ) THEN
        RETURN NULL;
    END IF;
    -- Other than CREATE TABLE ... PARTITION OF, this does not stop those who read and write.
    EXECUTE format('CREATE TABLE %I (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)', made, parent);
    EXECUTE format(
        'WITH moved AS (DELETE FROM %1$I WHERE %2$I >= %3$L AND %2$I < %4$L RETURNING *) INSERT INTO %5$I SELECT * FROM moved',
        parent || '_default', key, first, past, made
    );
    EXECUTE format('ALTER TABLE %s ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, made, first, past);
    RETURN made;
END $$;


-- Drops the partitions of the months before this one, which begins at `first`. Returns their names.
CREATE OR REPLACE FUNCTION operations_drop_partitions(parent regclass, month date, first text) RETURNS text[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp
    SET lock_timeout = '1s'
    AS $$
DECLARE
    key constant name := operations_partition_key(parent);
    gone constant text[] := ARRAY(
        SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = parent AND relname < parent || to_char(month, '_YYYY_MM') AND relname ~ '_\d{4}_\d\d$'
        ORDER BY relname
    );
    each name;
BEGIN
    IF month > date_trunc('month', clock_timestamp(), 'UTC') AT TIME ZONE 'UTC' THEN
        RAISE EXCEPTION 'a month is kept until it has ended' USING ERRCODE = 'insufficient_privilege';
    END IF;
    FOREACH each IN ARRAY gone LOOP
        EXECUTE format('DROP TABLE %I', each);
    END LOOP;
    EXECUTE format('DELETE FROM %I WHERE %I < %L', parent || '_default', key, first);
    RETURN gone;
END $$;


-- `migrate` lets the application call them.
REVOKE ALL ON FUNCTION operations_make_partition, operations_drop_partitions FROM PUBLIC;
