"""Returns by hand and losses of before have their decision too: nobody else was asked then."""

from django.db import migrations

APPROVALS = """
INSERT INTO approvals_approval (id, kind, subject_id, merchant_id, amount, bank_code, account_last4, account_name,
    status, reason, requested_by, request_id, requested_at, note, decided_by, decided_at, why)
SELECT 'apr_' || substr(md5(kind || subject_id || number), 1, 27), kind, subject_id, merchant.id, amount, '', '', '',
    'within_limits', '', actor, request_id, at, note, '', NULL, ''
FROM (
    SELECT 'return_by_hand' AS kind, made.id AS subject_id, 0 AS number, made.amount, made.created_at AS at,
        bank, biller_id, coalesce('staff:' || act.by, '') AS actor, coalesce(act.request_id, '') AS request_id,
        coalesce(act.why, '') AS note
    FROM receipts_return AS made JOIN receipts_receipt AS receipt ON receipt.id = made.receipt_id
    LEFT JOIN LATERAL (
        SELECT by, request_id, why FROM receipts_act
        WHERE subject_id = receipt.id AND deed = 'sent_back_by_hand' AND at <= made.created_at
        ORDER BY id DESC LIMIT 1
    ) AS act ON true
    WHERE by_hand
    UNION ALL
    SELECT 'write_off', receipt.id, act.round, amount, act.at, bank, biller_id, 'staff:' || act.by, act.request_id, why
    FROM receipts_act AS act JOIN receipts_receipt AS receipt ON receipt.id = act.subject_id WHERE deed = 'lost'
) AS item
LEFT JOIN merchants_merchant AS merchant ON merchant.bank = item.bank AND merchant.biller_id = item.biller_id;
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0002_guard"), ("receipts", "0021_list_in_turn")]
    operations = [
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.RunSQL(APPROVALS, migrations.RunSQL.noop),
    ]
