CREATE OR REPLACE FUNCTION transactions_append_count_deltas() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO transactions_countdelta (merchant_id, minute, type, status, delta)
        SELECT merchant_id, date_trunc('minute', created_at, 'UTC'), type, status, count(*)
        FROM after GROUP BY 1, 2, 3, 4;
    ELSE
        INSERT INTO transactions_countdelta (merchant_id, minute, type, status, delta)
        SELECT merchant_id, date_trunc('minute', created_at, 'UTC'), type, status, sum(delta)
        FROM (SELECT *, 1 AS delta FROM after UNION ALL SELECT *, -1 FROM before) AS both_ways
        GROUP BY 1, 2, 3, 4 HAVING sum(delta) <> 0;
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER transactions_count_inserted AFTER INSERT ON transactions_transaction
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION transactions_append_count_deltas();

CREATE OR REPLACE TRIGGER transactions_count_updated AFTER UPDATE ON transactions_transaction
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION transactions_append_count_deltas();


CREATE OR REPLACE FUNCTION transactions_roll_up_counts() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO transactions_transactioncount AS current (merchant_id, bucket, starts_at, type, status, count)
    SELECT merchant_id, bucket, date_trunc(bucket, minute, 'UTC'), type, status, sum(delta)
    FROM gone, unnest(ARRAY['month', 'day', 'hour', 'minute']) AS bucket
    GROUP BY 1, 2, 3, 4, 5 HAVING sum(delta) <> 0 ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (merchant_id, bucket, starts_at, type, status) DO UPDATE SET count = current.count + EXCLUDED.count;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER transactions_roll_up_counts AFTER DELETE ON transactions_countdelta
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
    EXECUTE FUNCTION transactions_roll_up_counts();


CREATE OR REPLACE FUNCTION transactions_protect_counts() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- Depth 1 is this trigger alone; depth 2 is this trigger within one of the above.
    IF TG_OP = 'TRUNCATE' OR pg_trigger_depth() < 2 THEN
        RAISE EXCEPTION 'only triggers change the counts' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER transactions_protect_counts BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON transactions_transactioncount
    FOR EACH STATEMENT
    EXECUTE FUNCTION transactions_protect_counts();

CREATE OR REPLACE TRIGGER transactions_protect_counts BEFORE INSERT OR UPDATE OR TRUNCATE ON transactions_countdelta
    FOR EACH STATEMENT
    EXECUTE FUNCTION transactions_protect_counts();


-- Rows are inserted and deleted all the time: vacuum after a number of changes, not after a share of the table.
ALTER TABLE transactions_countdelta SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
