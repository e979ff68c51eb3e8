from django.db import migrations

# As ParsedLine.sha256: without references 2 and 3, and without zeros in front of a number. Lines that were
# told apart by these become occurrences of one digest. The trigger guards the digest from others.
DIGEST_ANEW = """
ALTER TABLE reconciliation_statementline DISABLE TRIGGER pgtrigger_read_only_a364d;
UPDATE reconciliation_statementline AS line SET line_sha256 = found.digest, occurrence = found.occurrence
FROM (
    SELECT id, digest, row_number() OVER (PARTITION BY bank, biller_id, bank_date, digest ORDER BY id) AS occurrence
    FROM reconciliation_statementline AS old, LATERAL (
        SELECT encode(sha256(convert_to(concat_ws(
            E'\\x1f', old.kind, old.biller_id,
            CASE WHEN old.reference1 ~ '^[0-9]+$' THEN ltrim(old.reference1, '0') ELSE old.reference1 END,
            old.amount::text, to_char(old.paid_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS') || '+00:00'
        ), 'UTF8')), 'hex') AS digest
    ) AS computed
    WHERE old.result <> 'unreadable'
) AS found
WHERE line.id = found.id;
ALTER TABLE reconciliation_statementline ENABLE TRIGGER pgtrigger_read_only_a364d;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('reconciliation', '0011_fill_digests'),
    ]

    operations = [
        migrations.RunSQL(DIGEST_ANEW, migrations.RunSQL.noop),
    ]
