-- It has the rights of the owner, so that a release that knows no ids yet can store notifications during an upgrade.
CREATE OR REPLACE FUNCTION reconciliation_keep_notification_id() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp
    AS $$
BEGIN
    INSERT INTO reconciliation_notificationid (notification_id)
    SELECT NEW.id WHERE NEW.result <> 'new'
        OR NOT EXISTS (SELECT FROM reconciliation_banktransaction WHERE id = NEW.bank_transaction_id AND kind = 'credit');
    RETURN NULL;
END $$;

REVOKE ALL ON FUNCTION reconciliation_keep_notification_id() FROM PUBLIC;

-- Of others there is a credit, and the audit looks for what reported it.
CREATE OR REPLACE TRIGGER reconciliation_keep_notification_id AFTER INSERT ON reconciliation_banknotification
    FOR EACH ROW
    EXECUTE FUNCTION reconciliation_keep_notification_id();
