-- It has the rights of the owner, so that a release that knows no ids yet can store notifications during an upgrade.
CREATE OR REPLACE FUNCTION reconciliation_keep_notification_id() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp
    AS $$
BEGIN
    INSERT INTO reconciliation_notificationid (notification_id) SELECT id FROM after;
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION reconciliation_keep_notification_id() FROM PUBLIC;

CREATE OR REPLACE TRIGGER reconciliation_keep_notification_id AFTER INSERT ON reconciliation_banknotification
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION reconciliation_keep_notification_id();
