-- Not differences: a statement of a part of a day lacks the line of the other one until the rest is imported.

-- rule: money moved by staff has no probable duplicate that was moved
SELECT '', '' WHERE false
-- found
SELECT DISTINCT bank_transaction.id, concat(bank_transaction.resolution_state, ', probably the same as ', other.id)
FROM reconciliation_banktransaction AS bank_transaction,
LATERAL reconciliation_probable_duplicates(bank_transaction.id) AS same (id)
JOIN reconciliation_banktransaction AS other ON other.id = same.id
WHERE bank_transaction.resolution_state IN ('accepted', 'attached', 'sending_back', 'sent_back') AND (
    other.match_result = 'applied'
    OR other.resolution_state IN ('accepted', 'attached', 'sending_back', 'sent_back')
)
