SELECT counts_count_list(
    'transactions', 'transactions_transaction', $$type || '/' || status$$, amount => 'amount',
    all_kinds => $$type IN ('payment', 'failed', 'refund') AND status IN ('succeeded', 'refunded', 'failed', 'pending')$$
);
