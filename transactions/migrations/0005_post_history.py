"""Post what was paid before there was a ledger. `settled` is written at once: there is nobody to queue behind."""

from django.db import migrations

POST = """
SET LOCAL statement_timeout = 0;
INSERT INTO transactions_account (id, kind, merchant_id, settled)
SELECT kind || ':' || paid.merchant_id, kind, paid.merchant_id,
    CASE kind WHEN 'available' THEN sum(paid.amount) ELSE 0 END
FROM transactions_transaction AS paid, unnest(ARRAY['available', 'reserved', 'owed']) AS kind
WHERE paid.type = 'payment' GROUP BY kind, paid.merchant_id;

INSERT INTO transactions_account (id, kind, settled)
SELECT 'bank:' || merchant.bank, 'bank', -sum(paid.amount)
FROM transactions_transaction AS paid JOIN merchants_merchant AS merchant ON merchant.id = paid.merchant_id
WHERE paid.type = 'payment' GROUP BY merchant.bank;

WITH paid AS (
    SELECT paid.*, merchant.bank
    FROM transactions_transaction AS paid JOIN merchants_merchant AS merchant ON merchant.id = paid.merchant_id
    WHERE paid.type = 'payment'
),
journal AS (
    INSERT INTO transactions_journal (fact, subject_id, amount, created_at)
    SELECT 'payment', payment_id, amount, created_at FROM paid ORDER BY created_at, id
    RETURNING id, subject_id
)
INSERT INTO transactions_entry (journal_id, account_id, amount, created_at)
SELECT journal.id, line.account_id, line.amount, paid.created_at
FROM journal JOIN paid ON paid.payment_id = journal.subject_id,
    LATERAL (VALUES ('available:' || paid.merchant_id, paid.amount), ('bank:' || paid.bank, -paid.amount))
    AS line (account_id, amount);
"""


class Migration(migrations.Migration):
    dependencies = [("transactions", "0004_guard_ledger")]
    operations = [migrations.RunSQL(POST, migrations.RunSQL.noop)]
