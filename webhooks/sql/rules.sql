SELECT counts_count_list('events', 'webhooks_event', 'type');
SELECT counts_count_list('deliveries', 'webhooks_delivery', $$event_type || '/' || state$$, 'endpoint_id');

-- Rows are inserted and deleted all the time: vacuum after a number of changes, not after a share of the table.
ALTER TABLE webhooks_deliverylease SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
