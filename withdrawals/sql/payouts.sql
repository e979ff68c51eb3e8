-- Of a night: its withdrawals are exactly those of the commit that wrote its row, because that never changes. So a
-- second payout of a night cannot be committed. The argument is the column with the day.
CREATE OR REPLACE FUNCTION withdrawals_check_night() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    night date := to_jsonb(NEW) ->> TG_ARGV[0];
BEGIN
    IF (SELECT sum(amount) FROM public.withdrawals_withdrawal
            WHERE merchant_id = NEW.merchant_id AND payout_night = night)
        IS DISTINCT FROM (SELECT nullif(amount, 0) FROM public.withdrawals_payoutnight
            WHERE merchant_id = NEW.merchant_id AND day = night) THEN
        RAISE EXCEPTION 'the withdrawals of % for % are not those of its night', NEW.merchant_id, night
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS withdrawals_check_night ON withdrawals_withdrawal;
CREATE CONSTRAINT TRIGGER withdrawals_check_night AFTER INSERT ON withdrawals_withdrawal DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.payout_night IS NOT NULL)
    EXECUTE FUNCTION withdrawals_check_night('payout_night');

DROP TRIGGER IF EXISTS withdrawals_check_night ON withdrawals_payoutnight;
CREATE CONSTRAINT TRIGGER withdrawals_check_night AFTER INSERT ON withdrawals_payoutnight DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW
    EXECUTE FUNCTION withdrawals_check_night('day');


CREATE OR REPLACE FUNCTION withdrawals_check_schedule() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM public.approvals_payoutaccount
            WHERE id = NEW.account_id AND merchant_id = NEW.merchant_id) THEN
        RAISE EXCEPTION 'a payout account of another merchant' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER withdrawals_check_schedule BEFORE INSERT OR UPDATE ON withdrawals_payoutschedule
    FOR EACH ROW
    EXECUTE FUNCTION withdrawals_check_schedule();
