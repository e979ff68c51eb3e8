"""Traces and metrics for OpenTelemetry, if OTEL_EXPORTER_OTLP_ENDPOINT is set (extra `otel`).

One trace holds the life of a payment: the request that creates it, each of its events, and each attempt to
deliver them. An event stores its place in the trace. A bank knows nothing of our traces, so what it causes is
an event in the trace of the payment, with a link to the bank's own request.

If it is off, each call costs a comparison. Attributes are ids of ours, routes, statuses and actors: never a
path, a name, an account number or a body.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import requests
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from core import request_context, tls
from core.observing import measurements
from core.observing.measurements import Key

SERVICE = "thai-qr-payments"
MAX_LENGTH = 55  # of a traceparent, which is the form that W3C Trace Context defines
_tracer: Any = None
_parents: Any = None
_providers: list[Any] = []


def start(process: str) -> None:
    """Begin to export from this process. Forks do not share exporters, so each process calls it."""
    global _tracer, _parents
    if not settings.OTEL_EXPORTER_OTLP_ENDPOINT or _tracer is not None:
        return
    # Only in functions: the packages are optional, and take 100 ms to import.
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    # The exporters read this variable. An operator may set it for the collector alone.
    os.environ.setdefault("OTEL_EXPORTER_OTLP_CERTIFICATE", tls.ca_file())
    resource = Resource.create(
        {"service.name": SERVICE, "service.version": settings.VERSION, "process.name": process}
    )
    traces = TracerProvider(resource=resource)
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(session=_session())))
    metrics = PeriodicExportingMetricReader(OTLPMetricExporter(session=_session()))
    meters = MeterProvider([metrics], resource=resource)
    measurements.OF_PROCESS.listener = _metric_writer(meters.get_meter(SERVICE))
    _providers[:] = [traces, meters]
    _parents, _tracer = TraceContextTextMapPropagator(), traces.get_tracer(SERVICE)


def _session() -> requests.Session:
    """A session that keeps the authorities of its exporter: REQUESTS_CA_BUNDLE would take their place."""
    session = requests.Session()
    session.trust_env = False  # of this alone: proxies stay
    session.proxies.update(requests.utils.get_environ_proxies(settings.OTEL_EXPORTER_OTLP_ENDPOINT))
    return session


def stop() -> None:
    """Export what waits, for a few seconds at most."""
    for provider in _providers:
        provider.shutdown()


def is_on() -> bool:
    return _tracer is not None


def answer(request: HttpRequest, respond: Callable[[HttpRequest], HttpResponse]) -> HttpResponse:
    """Respond within a span, whose parent the client may name by the header `traceparent`."""
    from opentelemetry.trace import SpanKind, StatusCode

    parent = _context(request.META.get("HTTP_TRACEPARENT", ""))
    with _span("request", context=parent, kind=SpanKind.SERVER) as span:
        response = respond(request)
        route = measurements.request_route(request)
        span.update_name(f"{request.method} {route}")
        attributes = {
            "http.request.method": request.method,
            "http.route": route,
            "http.response.status_code": response.status_code,
            "thaiqr.request_id": request_context.current().request_id,
            "thaiqr.merchant": getattr(request, "merchant_id", None),
        }
        span.set_attributes({name: value for name, value in attributes.items() if value is not None})
        if response.status_code >= 500:
            span.set_status(StatusCode.ERROR)
    return response


def record_event(event_type: str, event_id: str, subject_id: str, parent: str = "") -> str | None:
    """Add an event to the trace of its subject, and return its `traceparent`; None if it is off.

    parent: the `traceparent` of an earlier event of the subject. Without one, the present span is the parent.
    """
    if _tracer is None:
        return None
    from opentelemetry.trace import Link, get_current_span

    current = get_current_span().get_span_context()
    links = [Link(current)] if parent and current.is_valid else []
    actor = request_context.current().actor
    who = "staff" if actor.startswith("staff:") else actor
    attributes = {"thaiqr.event": event_id, "thaiqr.subject": subject_id, "thaiqr.actor": who}
    with _span(event_type, context=_context(parent) if parent else None, links=links, attributes=attributes):
        return _traceparent()


@contextmanager
def delivery(traceparent: str | None, delivery_id: str, attempt: int) -> Iterator[str | None]:
    """An attempt to deliver an event. Yields the `traceparent` to send; None if there is no trace."""
    if _tracer is None or traceparent is None:
        yield None
        return
    from opentelemetry.trace import SpanKind

    named = {"thaiqr.delivery": delivery_id, "thaiqr.attempt": attempt}
    with _span("webhook delivery", context=_context(traceparent), kind=SpanKind.CLIENT, attributes=named):
        yield _traceparent()


def record_outcome(**attributes: Any) -> None:
    """Add attributes to the present span, if it is on."""
    if _tracer is not None:
        from opentelemetry.trace import get_current_span

        get_current_span().set_attributes({f"thaiqr.{name}": value for name, value in attributes.items()})


def bank_call(bank: str) -> AbstractContextManager[Any]:
    """A call to a bank or acquirer, which gets no header of ours."""
    if _tracer is None:
        return nullcontext()
    from opentelemetry.trace import SpanKind

    return _span("bank call", kind=SpanKind.CLIENT, attributes={"thaiqr.bank": bank})


def _span(name: str, **options: Any) -> AbstractContextManager[Any]:
    """A span that records no text of an exception."""
    span: AbstractContextManager[Any] = _tracer.start_as_current_span(name, record_exception=False, **options)
    return span


def _context(traceparent: str) -> Any:
    """The context of a `traceparent`; an empty one if the text is malformed."""
    from opentelemetry.context import Context

    return _parents.extract({"traceparent": traceparent[:MAX_LENGTH]}, context=Context())


def _traceparent() -> str:
    carrier: dict[str, str] = {}
    _parents.inject(carrier)
    return carrier.get("traceparent", "")


def _metric_writer(meter: Any) -> Callable[[Key, float], None]:
    """What writes each measurement with labels also as a histogram in seconds."""
    histograms = {
        name: meter.create_histogram(
            f"thaiqr.{name}.duration", "s", explicit_bucket_boundaries_advisory=list(measurements.BOUNDS)
        )
        for name in measurements.LABELS
    }

    def write(key: Key, seconds: float) -> None:
        if names := measurements.LABELS.get(key.name):
            histograms[key.name].record(seconds, dict(zip(names, key.labels, strict=True)))

    return write
