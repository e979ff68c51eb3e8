-- These functions have the rights of the owner of the tables, and nobody else can make a trigger with them: so
-- `core.database.triggers.WrittenByTriggers` knows who writes. A row of the queue and a place in the feed are made
-- nowhere else, so each event gets one of each.

ALTER TABLE webhooks_unnumberedevent ALTER id ADD GENERATED ALWAYS AS IDENTITY;


-- Each event waits for its sequence from its own commit on. Writers of one merchant do not wait for each other. Most
-- statements write one event, and a transition table would take longer than the rest.
CREATE OR REPLACE FUNCTION webhooks_wait_for_sequence() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp
    AS $$
BEGIN
    INSERT INTO webhooks_unnumberedevent (merchant_id, event_id) VALUES (NEW.merchant_id, NEW.id);
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION webhooks_wait_for_sequence() FROM PUBLIC;

-- Events for the operator are in no feed.
CREATE OR REPLACE TRIGGER webhooks_wait_for_sequence AFTER INSERT ON webhooks_event
    FOR EACH ROW WHEN (NEW.merchant_id IS NOT NULL)
    EXECUTE FUNCTION webhooks_wait_for_sequence();


-- Deleted rows get the next sequences of their merchant, in the order of their inserts. A block has events of one
-- minute, which the first 8 characters of their ids tell: so `nth - nth_of_minute` is the same for those that follow
-- each other. The caller holds the merchant's lock. Without it, the unique number lets only one of two callers in, and
-- the rows of the other still wait.
CREATE OR REPLACE FUNCTION webhooks_number_events() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp
    AS $$
BEGIN
    INSERT INTO webhooks_feedblock (merchant_id, first_sequence, last_event_id, event_ids)
    SELECT merchant_id, min(nth) + coalesce((
            SELECT before.first_sequence + cardinality(before.event_ids) - 1 FROM webhooks_feedblock AS before
            WHERE before.merchant_id = numbered.merchant_id ORDER BY before.first_sequence DESC LIMIT 1
        ), 0), max(event_id), array_agg(event_id ORDER BY nth)
    FROM (
        SELECT merchant_id, event_id, minute, row_number() OVER (PARTITION BY merchant_id ORDER BY id) AS nth,
            row_number() OVER (PARTITION BY merchant_id, minute ORDER BY id) AS nth_of_minute
        FROM (SELECT *, left(event_id, 8) AS minute FROM gone) AS dated
    ) AS numbered
    GROUP BY merchant_id, minute, nth - nth_of_minute, (nth - 1) / 50;
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION webhooks_number_events() FROM PUBLIC;

CREATE OR REPLACE TRIGGER webhooks_number_events AFTER DELETE ON webhooks_unnumberedevent
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
    EXECUTE FUNCTION webhooks_number_events();


-- Rows are inserted and deleted all the time: vacuum after a number of changes, not after a share of the table.
ALTER TABLE webhooks_unnumberedevent SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
