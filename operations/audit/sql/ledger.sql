-- The ledger is complete and balanced, and no account is overdrawn.

-- define ACCOUNT_BALANCES: the balance of each account, rolled up and pending
SELECT id, type, held FROM ledger_account JOIN (
    SELECT id, sum(satang) AS held FROM (
        SELECT id, rolled_up_balance AS satang FROM ledger_account
        UNION ALL SELECT account_id, amount FROM ledger_pendingentry
    ) AS part GROUP BY id
) AS whole USING (id)

-- rule: account balances equal the sum of their entries
SELECT id, sum(amount)::text FROM (
    SELECT id, 0 AS amount FROM ledger_account
    UNION ALL SELECT account_id, amount FROM ledger_entry
) AS line GROUP BY id
-- found
SELECT id, held::text FROM ({ACCOUNT_BALANCES}) AS account

-- rule: pending entries match ledger entries
SELECT entry.id::text, concat_ws(' ', entry.account_id, entry.amount)
FROM ledger_entry AS entry JOIN ledger_pendingentry ON entry_id = entry.id
-- found
SELECT entry_id::text, concat_ws(' ', account_id, amount) FROM ledger_pendingentry

-- rule: the entries of a journal sum to zero and match its amount and time
SELECT id::text, concat(amount, ' moved, 0 left, ', created_at, ' ', created_at)
FROM ledger_journal
-- found
SELECT journal_id::text, concat(
    sum(amount) FILTER (WHERE amount > 0), ' moved, ', sum(amount), ' left, ',
    min(created_at), ' ', max(created_at)
) FROM ledger_entry GROUP BY journal_id

-- rule: money leaves an account in the order of its times
SELECT '', '' WHERE false
-- found
SELECT id::text, concat(account_id, ' at ', created_at, ', after ', before) FROM (
    SELECT id, account_id, created_at,
        lag(created_at) OVER (PARTITION BY account_id ORDER BY id) AS before
    FROM ledger_entry WHERE amount < 0 AND account_id !~ '^(bank|acquirer|fees|fee_vat):'
) AS debit WHERE created_at < before

-- rule: bank balances equal all other balances
SELECT 'all accounts', coalesce(-sum(held), 0)::text FROM ({ACCOUNT_BALANCES}) AS account
WHERE type IN ('bank', 'acquirer', 'fees', 'fee_vat')
-- found
SELECT 'all accounts', coalesce(sum(held), 0)::text FROM ({ACCOUNT_BALANCES}) AS account
WHERE type NOT IN ('bank', 'acquirer', 'fees', 'fee_vat')

-- rule: no account is overdrawn
SELECT id, CASE
    WHEN type IN ('debt', 'write_offs') THEN least(rolled_up_balance, 0)
    ELSE greatest(rolled_up_balance, 0)
END::text
FROM ledger_account WHERE type NOT IN ('bank', 'acquirer', 'fees', 'fee_vat')
-- found
SELECT id, rolled_up_balance::text FROM ledger_account
WHERE type NOT IN ('bank', 'acquirer', 'fees', 'fee_vat')

-- rule: no journal mixes sandbox and live money
SELECT id::text, '1' FROM ledger_journal
-- found
SELECT journal_id::text, count(DISTINCT CASE
    WHEN account_id ~ '^(bank|acquirer|fees|fee_vat|suspense|write_offs)' THEN split_part(account_id, ':', 2) = 'sandbox'
    ELSE mode = 'test'
END)::text
FROM ledger_entry
LEFT JOIN merchants_merchant AS merchant ON merchant.id = split_part(account_id, ':', 2)
GROUP BY journal_id

-- rule: other journals use the accounts of their type
SELECT id::text, type FROM ledger_journal
WHERE type IN ('reversal', 'debt_repaid', 'held', 'accepted', 'sent_back', 'written_off',
    'recovered', 'confirmed', 'merged', 'unmerged', 'undone', 'settled', 'unsettled',
    'fee_returned', 'transfer_received', 'transfer_seen', 'difference_booked')
-- found
SELECT id::text, CASE
    WHEN owners > 1 THEN 'of several merchants'
    WHEN type = 'reversal'
        AND accounts ~ '^(-available )?(-debt )?(-suspense )?[+](bank|acquirer)$' THEN type
    WHEN type = 'reversal' AND accounts ~ '^-unconfirmed [+](bank|acquirer)$' THEN type
    WHEN type = 'confirmed' AND accounts = '-unconfirmed +available' THEN type
    WHEN type = 'settled' AND accounts = '-unsettled +available' THEN type
    WHEN type = 'fee_returned' AND accounts ~ '^(-fee_vat )?-fees [+]available$' THEN type
    WHEN type = 'transfer_received' AND accounts ~ '^-acquirer ([+]fee_vat )?[+]fees$' THEN type
    WHEN type = 'unsettled' AND accounts = '-available +unsettled' THEN type
    WHEN type = 'transfer_received'
        AND accounts ~ '^(-bank )?(-fee_vat )?(-fees )?(-write_offs )?[+]acquirer$' THEN type
    WHEN type = 'difference_booked' AND accounts ~ '^(-write_offs [+](bank|acquirer)|-(bank|acquirer) [+]write_offs)$' THEN type
    WHEN type = 'debt_repaid' AND accounts = '-available +debt' THEN type
    WHEN type = 'held' AND accounts ~ '^-(bank|acquirer) [+]suspense$' THEN type
    WHEN type = 'accepted' AND accounts = '-suspense +available' THEN type
    WHEN type = 'sent_back' AND accounts ~ '^-suspense [+](bank|acquirer)$' THEN type
    WHEN type = 'transfer_seen' AND accounts = '-suspense +bank' THEN type
    WHEN type IN ('merged', 'undone') AND accounts = '-suspense +bank' THEN type
    WHEN type = 'unmerged' AND accounts = '-bank +suspense' THEN type
    WHEN type = 'written_off' AND accounts = '-write_offs +bank' THEN type
    WHEN type = 'recovered' AND accounts = '-bank +write_offs' THEN type
    ELSE accounts
END
FROM (
    SELECT journal.id, journal.type, count(DISTINCT split_part(account_id, ':', 2))
            FILTER (WHERE account_id ~ '^(available|reserved|debt|unconfirmed|unsettled):') AS owners,
        string_agg(
            CASE WHEN entry.amount < 0 THEN '-' ELSE '+' END || split_part(account_id, ':', 1), ' '
            ORDER BY entry.amount > 0, account_id
        ) AS accounts
    FROM ledger_journal AS journal
    JOIN ledger_entry AS entry ON entry.journal_id = journal.id
    WHERE type IN ('reversal', 'debt_repaid', 'held', 'accepted', 'sent_back', 'written_off',
        'recovered', 'confirmed', 'merged', 'unmerged', 'undone', 'settled', 'unsettled',
    'fee_returned', 'transfer_received', 'transfer_seen', 'difference_booked')
    GROUP BY journal.id
) AS posting

-- rule: balance transactions name the source of their journal
SELECT id, 'its own' FROM ledger_balancetransaction
-- found
-- The source of a reversal or a confirmation is the payment of its bank transaction.
SELECT entry.id, 'its own' FROM ledger_balancetransaction AS entry JOIN (
    SELECT created_at, subject_id AS source_id FROM ledger_journal
    UNION
    SELECT journal.created_at, payment_id FROM ledger_journal AS journal
    JOIN reconciliation_banktransaction AS bank_transaction ON bank_transaction.id = subject_id
    UNION
    SELECT journal.created_at, payment_id FROM ledger_journal AS journal
    JOIN refunds_refundreversal ON reversal_id = subject_id
) AS posted USING (created_at, source_id)

-- rule: balance transactions match the entries of merchants
SELECT concat_ws(' ', merchant_id, created_at), concat_ws(' ',
    coalesce(sum(amount) FILTER (WHERE part IN ('available', 'debt')), 0),
    coalesce(sum(amount) FILTER (WHERE part = 'reserved'), 0),
    coalesce(sum(amount) FILTER (WHERE part = 'unconfirmed'), 0),
    coalesce(sum(amount) FILTER (WHERE part = 'unsettled'), 0))
FROM (
    SELECT split_part(account_id, ':', 1) AS part, split_part(account_id, ':', 2) AS merchant_id,
        entry.amount, entry.created_at
    FROM ledger_entry AS entry JOIN ledger_journal AS journal ON journal.id = journal_id
    WHERE account_id ~ '^(available|debt|reserved|unconfirmed|unsettled):' AND type <> 'debt_repaid'
) AS line GROUP BY merchant_id, created_at
-- found
SELECT concat_ws(' ', merchant_id, created_at), concat_ws(' ',
    sum(amount * available), sum(amount * reserved), sum(amount * unconfirmed), sum(amount * unsettled))
FROM ledger_balancetransaction
JOIN (VALUES {SIGNS_OF_TYPES}) AS sign (type, available, reserved, unconfirmed, unsettled) USING (type)
GROUP BY merchant_id, created_at
