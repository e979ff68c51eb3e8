-- What rules of several files share.

-- define JOURNAL_LINES: journal entries, as subject, type and account, with the satang
SELECT concat_ws(' ', journal.subject_id, journal.type, entry.account_id), entry.amount::text
FROM ledger_journal AS journal JOIN ledger_entry AS entry ON entry.journal_id = journal.id

-- define RECEIVED_AMOUNT: the amount that came in for a payment
coalesce(payment.amount_received, payment.amount)

-- define HELD: the money of the bank transaction waits, or waited, for staff
bank_transaction.kind = 'credit' AND bank_transaction.match_result IN {HELD_RESULTS}

-- define SUSPENSE_OF_BANK: the suspense account for money from a bank
CASE bank WHEN 'sandbox' THEN 'suspense:sandbox' ELSE 'suspense' END

-- define SUSPENSE_OF_ROUTE: the suspense account for money from a bank or acquirer
CASE split_part(route, ':', 2) WHEN 'sandbox' THEN 'suspense:sandbox' ELSE 'suspense' END
