SELECT counts_count_list(
    'transactions', 'transactions_transaction', $$type || '/' || status$$, amount => 'amount',
    all_kinds => $$type IN ('payment', 'failed', 'refund') AND status IN ('succeeded', 'refunded', 'failed', 'pending')$$
);

CREATE OR REPLACE TRIGGER merchants_check_exists AFTER INSERT ON transactions_transaction
    FOR EACH ROW EXECUTE FUNCTION merchants_check_exists();
