SELECT counts_count_list('events', 'webhooks_event', 'type');
