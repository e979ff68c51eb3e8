"""Metrics of webhooks: the backlog, and endpoints."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime

from django.db.models import Count, Q
from prometheus_client.core import Metric

from operations.metrics.families import gauge, gauges
from webhooks.delivery import metrics as backlog
from webhooks.models import Endpoint, EndpointStatus


def read(now: datetime) -> Iterator[Metric]:
    yield gauges("webhook_deliveries_due", "state", asdict(backlog.backlog(now)))
    yield gauge("webhook_deliveries_oldest_due_seconds", backlog.oldest_due_seconds(now))
    is_active, is_paused = Q(status=EndpointStatus.ACTIVE), Q(health__paused_until__isnull=False)
    is_verified = Q(health__verified_at__isnull=False)
    states = Endpoint.objects.filter(deleted_at=None).aggregate(
        active=Count("pk", filter=is_active & is_verified & ~is_paused),
        unverified=Count("pk", filter=is_active & ~is_verified & ~is_paused),
        paused=Count("pk", filter=is_active & is_paused),
        disabled=Count("pk", filter=~is_active),
    )
    yield gauges("webhook_endpoints", "state", states)
