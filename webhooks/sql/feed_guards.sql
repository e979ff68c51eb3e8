-- A row waits for a sequence only from the commit of its event on. Rows of one transaction have the same xmin.
CREATE OR REPLACE FUNCTION webhooks_protect_unnumbered() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (
        SELECT FROM after JOIN webhooks_unnumberedevent AS waiting ON waiting.id = after.id
        LEFT JOIN webhooks_event AS event ON event.id = after.event_id AND event.merchant_id = after.merchant_id
            AND event.xmin = waiting.xmin
        WHERE event.id IS NULL
    ) THEN
        RAISE EXCEPTION 'only triggers number events' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS webhooks_protect_feed ON webhooks_unnumberedevent;
CREATE OR REPLACE TRIGGER webhooks_protect_unnumbered AFTER INSERT ON webhooks_unnumberedevent
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION webhooks_protect_unnumbered();

CREATE OR REPLACE FUNCTION webhooks_protect_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'only triggers number events' USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE OR REPLACE TRIGGER webhooks_protect_changed BEFORE UPDATE ON webhooks_unnumberedevent
    FOR EACH STATEMENT
    EXECUTE FUNCTION webhooks_protect_changed();


-- A sequence is the next of the merchant, for an event of it that waits no longer.
CREATE OR REPLACE FUNCTION webhooks_protect_sequence() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (
        SELECT FROM after
        LEFT JOIN webhooks_event AS event ON event.id = after.event_id AND event.merchant_id = after.merchant_id
        LEFT JOIN webhooks_unnumberedevent AS waiting
            ON waiting.merchant_id = after.merchant_id AND waiting.event_id = after.event_id
        LEFT JOIN webhooks_eventsequence AS before
            ON before.merchant_id = after.merchant_id AND before.sequence = after.sequence - 1
        WHERE event.id IS NULL OR waiting.id IS NOT NULL OR before.event_id IS NULL AND after.sequence > 1
    ) THEN
        RAISE EXCEPTION 'only triggers number events' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS webhooks_protect_feed ON webhooks_eventsequence;
CREATE OR REPLACE TRIGGER webhooks_protect_sequence AFTER INSERT ON webhooks_eventsequence
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION webhooks_protect_sequence();


-- An event that waits twice is numbered once.
CREATE OR REPLACE FUNCTION webhooks_number_events() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO webhooks_eventsequence (event_id, merchant_id, sequence)
    SELECT gone.event_id, gone.merchant_id,
        newest.sequence + row_number() OVER (PARTITION BY gone.merchant_id ORDER BY gone.id)
    FROM (
        SELECT merchant_id, event_id, min(id) AS id FROM gone
        WHERE NOT EXISTS (SELECT FROM webhooks_eventsequence AS numbered WHERE numbered.event_id = gone.event_id)
        GROUP BY merchant_id, event_id
    ) AS gone JOIN (
        SELECT merchant_id, coalesce((
            SELECT max(sequence) FROM webhooks_eventsequence AS numbered
            WHERE numbered.merchant_id = merchant.merchant_id
        ), 0) AS sequence
        FROM (SELECT DISTINCT merchant_id FROM gone) AS merchant
    ) AS newest USING (merchant_id);
    RETURN NULL;
END $$;


-- Its triggers are gone.
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS webhooks_protect_feed();
