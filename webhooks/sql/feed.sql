-- Each event waits for its sequence from its own commit on. Writers of one merchant do not wait for each other.
CREATE OR REPLACE FUNCTION webhooks_wait_for_sequence() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO webhooks_unnumberedevent (merchant_id, event_id) SELECT merchant_id, id FROM after;
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER webhooks_wait_for_sequence AFTER INSERT ON webhooks_event
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION webhooks_wait_for_sequence();


-- Events that are older than the feed.
INSERT INTO webhooks_unnumberedevent (merchant_id, event_id)
SELECT merchant_id, id FROM webhooks_event ORDER BY created_at, id;


-- A deleted row gets the next sequence of its merchant. The caller holds the merchant's lock. Without it, the
-- unique number lets only one of two callers in, and the rows of the other still wait.
CREATE OR REPLACE FUNCTION webhooks_number_events() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO webhooks_eventsequence (event_id, merchant_id, sequence)
    SELECT gone.event_id, gone.merchant_id,
        newest.sequence + row_number() OVER (PARTITION BY gone.merchant_id ORDER BY gone.id)
    FROM gone JOIN (
        SELECT merchant_id, coalesce((
            SELECT max(sequence) FROM webhooks_eventsequence AS numbered
            WHERE numbered.merchant_id = merchant.merchant_id
        ), 0) AS sequence
        FROM (SELECT DISTINCT merchant_id FROM gone) AS merchant
    ) AS newest USING (merchant_id);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER webhooks_number_events AFTER DELETE ON webhooks_unnumberedevent
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
    EXECUTE FUNCTION webhooks_number_events();


-- Rows are inserted and deleted all the time: vacuum after a number of changes, not after a share of the table.
ALTER TABLE webhooks_unnumberedevent SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
