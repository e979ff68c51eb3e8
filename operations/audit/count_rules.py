"""The counts that are kept beside the history."""

from operations.audit.rules import AuditRule

RULES = [
    AuditRule(
        "transaction counts match the transactions",
        """WITH minute AS (
               SELECT merchant_id, date_trunc('minute', created_at, 'UTC') AS at, type, status,
                   count(*) AS rows
               FROM transactions_transaction GROUP BY 1, 2, 3, 4
               UNION ALL SELECT merchant_id, minute, type, status, -delta FROM transactions_countdelta
           )
           SELECT concat_ws(' ', merchant_id, bucket, date_trunc(bucket, at, 'UTC'), type, status),
               sum(rows)::text
           FROM minute, unnest(ARRAY['month', 'day', 'hour', 'minute']) AS bucket
           GROUP BY merchant_id, bucket, date_trunc(bucket, at, 'UTC'), type, status HAVING sum(rows) <> 0""",
        """SELECT concat_ws(' ', merchant_id, bucket, starts_at, type, status), count::text
           FROM transactions_transactioncount WHERE count <> 0""",
    ),
]
