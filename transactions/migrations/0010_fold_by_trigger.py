"""By no way but two does a row come or go that waits to be folded, so that no money is lost on the way."""

from django.db import migrations

# REPLACE and IF EXISTS: some databases made between two releases have them already.
FOLD = """
CREATE OR REPLACE FUNCTION unfolded_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Of one xmin are rows that came together: an entry that is in `settled` already cannot wait once more.
    IF NOT EXISTS (
        SELECT FROM transactions_unfolded AS waiting JOIN transactions_entry AS entry ON entry.id = entry_id
        WHERE entry_id = NEW.entry_id AND entry.xmin = waiting.xmin
            AND (entry.account_id, entry.amount) = (waiting.account_id, waiting.amount)
    ) THEN
        RAISE EXCEPTION 'only a new entry waits to be folded' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS unfolded_once ON transactions_unfolded;
CREATE TRIGGER unfolded_once AFTER INSERT ON transactions_unfolded
    FOR EACH ROW EXECUTE FUNCTION unfolded_once();

CREATE OR REPLACE FUNCTION unfolded_add() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE transactions_account AS account SET settled = account.settled + added.amount
    FROM (SELECT account_id, sum(amount) AS amount FROM gone GROUP BY account_id) AS added
    WHERE account.id = added.account_id;
    RETURN NULL;
END $$;
DROP TRIGGER IF EXISTS unfolded_add ON transactions_unfolded;
CREATE TRIGGER unfolded_add AFTER DELETE ON transactions_unfolded
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION unfolded_add();
"""
UNFOLD = """
DROP TRIGGER unfolded_add ON transactions_unfolded;
DROP FUNCTION unfolded_add();
DROP TRIGGER unfolded_once ON transactions_unfolded;
DROP FUNCTION unfolded_once();
"""


class Migration(migrations.Migration):
    dependencies = [("transactions", "0009_losses")]
    operations = [migrations.RunSQL(FOLD, UNFOLD)]
