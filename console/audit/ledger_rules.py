"""The ledger by itself: it is whole, balanced, and nowhere below zero."""

from console.audit.rules import Rule

# What is in each account, by what it says of itself.
HELD = """
    SELECT id, kind, held FROM transactions_account JOIN (
        SELECT id, sum(satang) AS held FROM (
            SELECT id, settled AS satang FROM transactions_account
            UNION ALL SELECT account_id, amount FROM transactions_unfolded
        ) AS part GROUP BY id
    ) AS whole USING (id)
"""
RULES = [
    Rule(
        "an account holds what its entries say",
        """SELECT id, sum(amount)::text FROM (
               SELECT id, 0 AS amount FROM transactions_account
               UNION ALL SELECT account_id, amount FROM transactions_entry
           ) AS line GROUP BY id""",
        f"SELECT id, held::text FROM ({HELD}) AS account",  # noqa: S608
    ),
    Rule(
        "what waits to be folded is an entry",
        """SELECT entry.id::text, concat_ws(' ', entry.account_id, entry.amount)
           FROM transactions_entry AS entry JOIN transactions_unfolded ON entry_id = entry.id""",
        "SELECT entry_id::text, concat_ws(' ', account_id, amount) FROM transactions_unfolded",
    ),
    Rule(
        "the entries of a journal sum to zero and move what it says, when it says",
        """SELECT id::text, concat(amount, ' moved, 0 left, ', created_at, ' ', created_at)
           FROM transactions_journal""",
        """SELECT journal_id::text, concat(
               sum(amount) FILTER (WHERE amount > 0), ' moved, ', sum(amount), ' left, ',
               min(created_at), ' ', max(created_at)
           ) FROM transactions_entry GROUP BY journal_id""",
    ),
    Rule(
        "what banks hold for us is what merchants and staff have",
        f"""SELECT 'all of it', (-sum(held))::text FROM ({HELD}) AS account
            WHERE kind IN ('bank', 'acquirer') HAVING count(*) > 0""",  # noqa: S608
        f"""SELECT 'all of it', sum(held)::text FROM ({HELD}) AS account
            WHERE kind NOT IN ('bank', 'acquirer') HAVING count(*) > 0""",  # noqa: S608
    ),
    Rule(
        "no account is overdrawn",
        """SELECT id, CASE
               WHEN kind IN ('owed', 'losses') THEN least(settled, 0) ELSE greatest(settled, 0)
           END::text
           FROM transactions_account WHERE kind NOT IN ('bank', 'acquirer')""",
        """SELECT id, settled::text FROM transactions_account
           WHERE kind NOT IN ('bank', 'acquirer')""",
    ),
    Rule(
        "sandbox money and live money never meet",
        """SELECT id::text, '1' FROM transactions_journal""",
        """SELECT journal_id::text, count(DISTINCT CASE
               WHEN account_id ~ '^(bank|acquirer|suspense)' THEN split_part(account_id, ':', 2) = 'sandbox'
               ELSE mode = 'test'
           END)::text
           FROM transactions_entry
           LEFT JOIN merchants_merchant AS merchant ON merchant.id = split_part(account_id, ':', 2)
           GROUP BY journal_id""",
    ),
    Rule(
        "other postings go where their fact says",
        """SELECT id::text, fact FROM transactions_journal
           WHERE fact IN ('reversal', 'owed_filled', 'held', 'accepted', 'sent_back', 'lost', 'recovered',
               'confirmed', 'merged', 'unmerged')""",
        """SELECT id::text, CASE
               WHEN owners > 1 THEN 'of several merchants'
               WHEN fact = 'reversal' AND way ~ '^(-available )?(-owed )?[+](bank|acquirer)$' THEN fact
               WHEN fact = 'reversal' AND way ~ '^-suspense [+](bank|acquirer)$' THEN fact
               WHEN fact = 'reversal' AND way ~ '^-unconfirmed [+](bank|acquirer)$' THEN fact
               WHEN fact = 'confirmed' AND way = '-unconfirmed +available' THEN fact
               WHEN fact = 'owed_filled' AND way = '-available +owed' THEN fact
               WHEN fact = 'held' AND way ~ '^-(bank|acquirer) [+]suspense$' THEN fact
               WHEN fact = 'accepted' AND way = '-suspense +available' THEN fact
               WHEN fact = 'sent_back' AND way ~ '^-suspense [+](bank|acquirer)$' THEN fact
               WHEN fact = 'merged' AND way = '-suspense +bank' THEN fact
               WHEN fact = 'unmerged' AND way = '-bank +suspense' THEN fact
               WHEN fact = 'lost' AND way = '-losses +bank' THEN fact
               WHEN fact = 'recovered' AND way = '-bank +losses' THEN fact
               ELSE way
           END
           FROM (
               SELECT journal.id, fact, count(DISTINCT split_part(account_id, ':', 2))
                       FILTER (WHERE account_id ~ '^(available|reserved|owed|unconfirmed):') AS owners,
                   string_agg(
                       CASE WHEN entry.amount < 0 THEN '-' ELSE '+' END || split_part(account_id, ':', 1), ' '
                       ORDER BY entry.amount > 0, account_id
                   ) AS way
               FROM transactions_journal AS journal
               JOIN transactions_entry AS entry ON entry.journal_id = journal.id
               WHERE fact IN ('reversal', 'owed_filled', 'held', 'accepted', 'sent_back', 'lost', 'recovered',
                   'confirmed', 'merged', 'unmerged')
               GROUP BY journal.id
           ) AS posting""",
    ),
]
