"""No bank is told of a withdrawal of a merchant who owes, whatever the code believes."""

from django.db import migrations

# The lock makes a reversal under way come first, or wait until this is committed.
GUARD = """
CREATE FUNCTION withdrawals_not_sent_in_debt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM transactions_account WHERE id = 'available:' || NEW.merchant_id FOR NO KEY UPDATE;
    IF EXISTS (SELECT FROM transactions_account WHERE id = 'owed:' || NEW.merchant_id AND settled < 0) THEN
        RAISE EXCEPTION 'nothing is sent for a merchant that owes' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER withdrawals_not_sent_in_debt AFTER UPDATE OF state ON transfers_transfer FOR EACH ROW
    WHEN (OLD.state = 'queued' AND NEW.state = 'told' AND NEW.purpose = 'withdrawal')
    EXECUTE FUNCTION withdrawals_not_sent_in_debt();
"""
UNGUARD = """
DROP TRIGGER withdrawals_not_sent_in_debt ON transfers_transfer;
DROP FUNCTION withdrawals_not_sent_in_debt();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("withdrawals", "0004_unreachable"),
        ("transfers", "0009_held"),
        ("transactions", "0012_fold_in_batches"),
    ]
    operations = [migrations.RunSQL(GUARD, UNGUARD)]
