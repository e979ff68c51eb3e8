-- It has the rights of the owner, so that a release that knows no ids yet can store notifications during an upgrade.
CREATE OR REPLACE FUNCTION reconciliation_keep_notification_id() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp
    AS $$
BEGIN
    INSERT INTO reconciliation_notificationid (notification_id) VALUES (NEW.id);
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION reconciliation_keep_notification_id() FROM PUBLIC;

-- Of other notifications there is a bank transaction, and the audit looks for what reported it.
CREATE OR REPLACE TRIGGER reconciliation_keep_notification_id AFTER INSERT ON reconciliation_banknotification
    FOR EACH ROW WHEN (NEW.result <> 'new' OR NEW.bank_transaction_id IS NULL)
    EXECUTE FUNCTION reconciliation_keep_notification_id();
