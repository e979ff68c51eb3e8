"""Metrics of webhooks: the backlog, attempts by outcome and duration, endpoints."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count, Q
from prometheus_client.core import Metric

from operations.metrics.families import Histograms, Labels, counter, counters, gauge, gauges
from webhooks.delivery import metrics as backlog
from webhooks.delivery import queue
from webhooks.models import CounterType, DeliveryCounter, Endpoint, EndpointStatus


def read(now: datetime) -> Iterator[Metric]:
    yield from _waiting(now)
    yield from _attempts()
    yield _endpoints()


def _waiting(now: datetime) -> Iterator[Metric]:
    waiting = backlog.backlog(now)
    yield gauges(
        "webhook_deliveries_due",
        f"Deliveries that wait for a worker (due), or for an endpoint that is paused or unverified (paused); "
        f"counted up to {backlog.MAX_COUNTED}.",
        "state",
        {"due": waiting.due, "paused": waiting.paused},
    )
    yield gauge(
        "webhook_deliveries_oldest_due_seconds",
        "Age of the oldest due delivery that no worker took; without paused and unverified endpoints.",
        backlog.oldest_due_seconds(now),
    )


def _attempts() -> Iterator[Metric]:
    known = list(DeliveryCounter.objects.all())
    attempts = [each for each in known if each.type == CounterType.ATTEMPT]
    outcomes: Counter[Labels] = Counter({(backlog.SUCCEEDED,): 0, (queue.WORKER_LOST,): 0})
    bounds = backlog.BUCKETS_MS[:-1]
    durations = Histograms(
        "webhook_delivery_attempt_seconds", "Duration of delivery attempts.", (), [ms / 1000 for ms in bounds]
    )
    durations.add((), 0, 0, 0.0)
    for each in attempts:
        outcomes[each.outcome,] += each.count
        if each.bucket_ms > 0:  # an attempt of a lost worker has no duration
            bucket = backlog.BUCKETS_MS.index(each.bucket_ms)
            durations.add((), bucket, each.count, each.total_ms / 1000)
    yield counters("webhook_delivery_attempts", "Attempts to deliver, by outcome.", ("outcome",), outcomes)
    yield durations.family()
    failed = sum(each.count for each in known if each.type == CounterType.WAKEUP)
    yield counter("webhook_wakeup_failures", "Wakeups that did not reach Redis.", failed)


def _endpoints() -> Metric:
    is_active, is_paused = Q(status=EndpointStatus.ACTIVE), Q(health__paused_until__isnull=False)
    is_verified = Q(health__verified_at__isnull=False)
    states = Endpoint.objects.filter(deleted_at=None).aggregate(
        active=Count("pk", filter=is_active & is_verified & ~is_paused),
        unverified=Count("pk", filter=is_active & ~is_verified & ~is_paused),
        paused=Count("pk", filter=is_active & is_paused),
        disabled=Count("pk", filter=~is_active),
    )
    return gauges("webhook_endpoints", "Registered endpoints.", "state", states)
