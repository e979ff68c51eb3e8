"""`/metrics`: the state of the service in the Prometheus text format.

All values come from the database and from Redis, so every web process returns the same. Counters are stored
as they grow, and waiting rows are counted up to a limit, so the cost does not grow with the history.
"""

from collections.abc import Iterator
from functools import partial

from django.core.cache import caches
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from apidocs import openapi as docs
from core import clock
from core.database import rows
from core.database.cut import connection_cut_at
from core.deadlines import Deadline
from core.http.api import get_or_head_only
from operations.metrics import deliveries, jobs, measured, money_in, money_out, service
from operations.metrics.families import gauge
from operations.metrics.health import KEPT_SECONDS, require_monitoring_token

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Prometheus waits ten seconds, and a new connection may take five.
READ_SECONDS = 4


class DatabaseCollector(Collector):
    """Reads all metrics for each scrape, within a deadline."""

    def collect(self) -> Iterator[Metric]:
        """What could be read. Without a database these are its state and that of Redis."""
        found, is_complete = [], False
        try:
            with connection_cut_at(Deadline.after(READ_SECONDS)), transaction.atomic():
                rows.run(f"SET LOCAL statement_timeout = '{READ_SECONDS}s'", [])
                for family in self._read():
                    found.append(family)
            is_complete = True
        except (DatabaseError, InterfaceError):
            connection.close_if_unusable_or_obsolete()
        yield gauge("database_up", bool(found))
        yield gauge("metrics_complete", is_complete)
        yield from service.read_redis()
        yield from found

    def _read(self) -> Iterator[Metric]:
        """The most important ones first."""
        now = clock.now()
        yield from service.read(now)
        yield from jobs.read()
        yield from measured.read()
        yield from money_out.read(now)
        yield from money_in.read(now)
        yield from deliveries.read(now)


REGISTRY = CollectorRegistry()
REGISTRY.register(DatabaseCollector())


@docs.metrics
@require_monitoring_token
@get_or_head_only
def metrics(request: HttpRequest) -> HttpResponse:
    text = caches["process"].get_or_set("metrics", partial(generate_latest, REGISTRY), KEPT_SECONDS)
    return HttpResponse(text, content_type=CONTENT_TYPE)
