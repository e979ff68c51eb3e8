SELECT counts_count_list('events', 'webhooks_event', 'type');
SELECT counts_count_list('deliveries', 'webhooks_delivery', $$event_type || '/' || shown_state$$, 'endpoint_id');
