SELECT counts_count_list(
    'events', 'webhooks_event', 'type',
    all_kinds => $$type IN (
        'payment.succeeded', 'payment.failed', 'payment.pending', 'payment.fee_known', 'payment.hold_lifted',
        'payment.exception', 'payment.exception_resolved', 'withdrawal.processed', 'withdrawal.succeeded',
        'withdrawal.failed', 'withdrawal.pending', 'refund.completed', 'refund.failed', 'settlement.arrived',
        'webhook.ping', 'destination.ping'
    )$$
);
SELECT counts_count_list('deliveries', 'webhooks_delivery', $$event_type || '/' || state$$, 'endpoint_id');

-- Rows are inserted and deleted all the time: vacuum after a number of changes, not after a share of the table.
ALTER TABLE webhooks_deliverylease SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);


CREATE OR REPLACE TRIGGER merchants_check_here BEFORE UPDATE OF status ON webhooks_endpoint
    FOR EACH ROW WHEN (NEW.status = 'active')
    EXECUTE FUNCTION merchants_check_here();
