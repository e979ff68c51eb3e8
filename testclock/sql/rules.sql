-- Each advance writes its row, so no transaction can move the time of a live merchant.
CREATE OR REPLACE FUNCTION testclock_check_merchant() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM merchants_merchant WHERE id = NEW.merchant_id AND mode = 'test') THEN
        RAISE EXCEPTION 'only test merchants have a clock' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER testclock_check_merchant BEFORE INSERT OR UPDATE ON testclock_merchantclock
    FOR EACH ROW
    EXECUTE FUNCTION testclock_check_merchant();
