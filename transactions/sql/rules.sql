SELECT counts_count_list('transactions', 'transactions_transaction', $$type || '/' || status$$, amount => 'amount');
