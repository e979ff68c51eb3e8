"""The counts that are kept beside the history."""

from console.audit.rules import Rule

RULES = [
    Rule(
        "the tallies and what is uncounted are what the history has",
        """WITH minute AS (
               SELECT merchant_id, date_trunc('minute', created_at, 'UTC') AS at, type, status,
                   count(*) AS rows
               FROM transactions_transaction GROUP BY 1, 2, 3, 4
               UNION ALL SELECT merchant_id, minute, type, status, -change FROM transactions_uncounted
           )
           SELECT concat_ws(' ', merchant_id, span, date_trunc(span, at, 'UTC'), type, status),
               sum(rows)::text
           FROM minute, unnest(ARRAY['month', 'day', 'hour', 'minute']) AS span
           GROUP BY merchant_id, span, date_trunc(span, at, 'UTC'), type, status HAVING sum(rows) <> 0""",
        """SELECT concat_ws(' ', merchant_id, span, begins_at, type, status), count::text
           FROM transactions_tally WHERE count <> 0""",
    ),
]
