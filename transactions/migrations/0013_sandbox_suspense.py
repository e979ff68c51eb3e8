"""Money of the sandbox bank that waits for staff has an account of its own, apart from live money."""

import django.db.models.functions.text
from django.db import migrations, models

LIVE, SANDBOX = "suspense", "suspense:sandbox"
# Deferred, because it reads the other lines of the journal.
GUARD = """
CREATE FUNCTION ledger_keeps_sandbox_apart() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM transactions_entry AS entry JOIN transactions_account AS account ON account.id = account_id
        LEFT JOIN merchants_merchant AS merchant ON merchant.id = merchant_id
        WHERE journal_id = NEW.journal_id AND (
            CASE WHEN merchant_id IS NULL THEN split_part(account_id, ':', 2) = 'sandbox' ELSE mode = 'test' END
        ) <> (NEW.account_id = 'suspense:sandbox')
    ) THEN
        RAISE EXCEPTION 'sandbox money and live money in journal %', NEW.journal_id
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER ledger_keeps_sandbox_apart AFTER INSERT ON transactions_entry
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (starts_with(NEW.account_id, 'suspense')) EXECUTE FUNCTION ledger_keeps_sandbox_apart();
"""
UNGUARD = """
DROP TRIGGER ledger_keeps_sandbox_apart ON transactions_entry;
DROP FUNCTION ledger_keeps_sandbox_apart();
"""


def moved(source: str, target: str, where: str) -> str:
    """The SQL that moves entries between accounts. Only test money is rewritten: it was never anybody's.

    Triggers are off meanwhile, because histories refuse UPDATE. The table stays locked until the commit.
    """
    return f"""
    ALTER TABLE transactions_entry DISABLE TRIGGER USER;
    ALTER TABLE transactions_unfolded DISABLE TRIGGER USER;
    CREATE TEMPORARY TABLE moving ON COMMIT DROP AS
        SELECT entry.id, entry.amount, unfolded.entry_id IS NULL AS is_settled
        FROM transactions_entry AS entry LEFT JOIN transactions_unfolded AS unfolded ON entry_id = entry.id
        WHERE entry.account_id = '{source}' AND {where};
    INSERT INTO transactions_account (id, kind, merchant_id, settled)
        SELECT '{target}', 'suspense', NULL, 0 WHERE EXISTS (SELECT FROM moving) ON CONFLICT DO NOTHING;
    UPDATE transactions_entry SET account_id = '{target}' WHERE id IN (SELECT id FROM moving);
    UPDATE transactions_unfolded SET account_id = '{target}' WHERE entry_id IN (SELECT id FROM moving);
    UPDATE transactions_account AS account SET settled = settled + change.amount FROM (
        SELECT '{source}' AS id, -sum(amount) AS amount FROM moving WHERE is_settled
        UNION ALL SELECT '{target}', sum(amount) FROM moving WHERE is_settled
    ) AS change WHERE account.id = change.id AND change.amount IS NOT NULL;
    SET CONSTRAINTS ALL IMMEDIATE;
    ALTER TABLE transactions_entry ENABLE TRIGGER USER;
    ALTER TABLE transactions_unfolded ENABLE TRIGGER USER;
    SET CONSTRAINTS ALL DEFERRED;
    DROP TABLE moving;
    """  # noqa: S608


OF_SANDBOX = """EXISTS (
    SELECT FROM transactions_entry AS other JOIN transactions_account AS account ON account.id = other.account_id
    LEFT JOIN merchants_merchant AS merchant ON merchant.id = account.merchant_id
    WHERE other.journal_id = entry.journal_id AND other.id <> entry.id
        AND (account.id IN ('bank:sandbox', 'acquirer:sandbox') OR merchant.mode = 'test')
)"""

# The constraint of before knows no such account.
CLOSE = f"""
ALTER TABLE transactions_account DISABLE TRIGGER USER;
DELETE FROM transactions_account WHERE id = '{SANDBOX}';
SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE transactions_account ENABLE TRIGGER USER;
SET CONSTRAINTS ALL DEFERRED;
"""  # noqa: S608


class Migration(migrations.Migration):
    dependencies = [
        ("merchants", "0003_bank_links"),
        ("transactions", "0012_fold_in_batches"),
    ]

    operations = [
        # Millions of rows are looked at, which takes longer than a request may.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.RemoveConstraint(model_name="account", name="account_code_says_whose"),
        migrations.RemoveConstraint(model_name="unfolded", name="unfolded_never_takes"),
        migrations.AddConstraint(
            model_name="account",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        (
                            "id",
                            django.db.models.functions.text.Concat(
                                models.F("kind"),
                                models.Value(":"),
                                models.F("merchant_id"),
                                output_field=models.TextField(),
                            ),
                        ),
                        ("kind__in", ("available", "reserved", "owed", "unconfirmed")),
                        ("merchant__isnull", False),
                    ),
                    models.Q(("id__regex", "^bank:."), ("kind", "bank"), ("merchant__isnull", True)),
                    models.Q(("id__regex", "^acquirer:."), ("kind", "acquirer"), ("merchant__isnull", True)),
                    models.Q(
                        ("id__in", ["suspense", "suspense:sandbox"]),
                        ("kind", "suspense"),
                        ("merchant__isnull", True),
                    ),
                    models.Q(("id", "losses"), ("kind", "losses"), ("merchant__isnull", True)),
                    _connector="OR",
                ),
                name="account_code_says_whose",
            ),
        ),
        migrations.AddConstraint(
            model_name="unfolded",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("account_id__regex", "^(bank|acquirer):"),
                    models.Q(
                        ("account_id__regex", "^(available:|unconfirmed:|suspense(:sandbox)?$)"),
                        ("amount__gt", 0),
                    ),
                    _connector="OR",
                ),
                name="unfolded_never_takes",
            ),
        ),
        migrations.RunSQL(moved(LIVE, SANDBOX, OF_SANDBOX), moved(SANDBOX, LIVE, "true") + CLOSE),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
