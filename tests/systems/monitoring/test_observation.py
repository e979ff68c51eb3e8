"""All real processes: one trace from a code to its webhook, reports of errors, lines of JSON, metrics."""

import gzip
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
import requests
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.stack import Stack, wait_until
from tests.webhook_receiver import ReceivedRequest, Receiver, running_receiver
from tests.webhooks.certificates import Authority

pytestmark = pytest.mark.slow
SECONDS = 60.0
PAYER = "Somsri Jaidee"
# The trace of the merchant's own program, which creates the code.
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


class Observed:
    """An instance, and what it sent to each receiver."""

    def __init__(self, stack: Stack, shop: Receiver, collector: Receiver, sentry: Receiver) -> None:
        self.stack, self.shop, self.collector, self.sentry = stack, shop, collector, sentry

    def post(self, path: str, body: dict[str, Any], **headers: str) -> dict[str, Any]:
        headers |= {"Authorization": f"Bearer {self.stack.secret_key}"}
        response = requests.post(f"{self.stack.base_url}{path}", json=body, headers=headers, timeout=30)
        assert response.ok, response.text
        answered: dict[str, Any] = response.json()
        return answered

    def spans(self) -> list[Span]:
        found = []
        for received in self._exports("/v1/traces"):
            export = ExportTraceServiceRequest.FromString(body_of(received))
            found += [
                span for each in export.resource_spans for scope in each.scope_spans for span in scope.spans
            ]
        return found

    def metric_names(self) -> set[str]:
        names = set()
        for received in self._exports("/v1/metrics"):
            export = ExportMetricsServiceRequest.FromString(body_of(received))
            names |= {
                metric.name
                for each in export.resource_metrics
                for scope in each.scope_metrics
                for metric in scope.metrics
            }
        return names

    def error_reports(self) -> list[dict[str, Any]]:
        """The events of all envelopes: a header, then a header and a body for each item."""
        found = []
        for received in list(self.sentry.requests):
            lines = body_of(received).split(b"\n")
            for header, body in zip(lines[1::2], lines[2::2], strict=False):
                if header and json.loads(header)["type"] == "event":
                    found.append(json.loads(body))
        return found

    def sent(self) -> bytes:
        """All bytes that went to the two receivers."""
        return b"\n".join(body_of(each) for each in [*self.collector.requests, *self.sentry.requests])

    def _exports(self, path: str) -> list[ReceivedRequest]:
        return [each for each in list(self.collector.requests) if each.path == path]


def body_of(received: ReceivedRequest) -> bytes:
    is_packed = received.headers.get("content-encoding") == "gzip"
    return gzip.decompress(received.body) if is_packed else received.body


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    with ExitStack() as opened:
        authority = Authority(tmp_path_factory.mktemp("authority"))
        server = authority.server("127.0.0.1")
        shop = opened.enter_context(running_receiver())
        collector, sentry = (opened.enter_context(running_receiver(tls=server)) for _ in range(2))
        stack = Stack.on_shared_server(
            tmp_path_factory.mktemp("observed") / "data",
            CA_BUNDLE=str(authority.ca_file),
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url("", scheme="https"),
            OTEL_BSP_SCHEDULE_DELAY="200",
            OTEL_METRIC_EXPORT_INTERVAL="500",
            SENTRY_DSN=sentry.url("/1", scheme="https").replace("://", "://public@"),
            REQUEST_LOG_RETENTION_DAYS="30",
        )
        opened.enter_context(stack)
        yield Observed(stack, shop, collector, sentry)


NOTIFICATION = "POST /banks/<str:bank>/notifications"
OF_A_LIFE = {"POST /v1/qr-codes", NOTIFICATION, "payment.succeeded", "webhook delivery"}


@pytest.fixture(scope="module")
def life(observed: Observed) -> list[Span]:
    """The spans of a payment that was created, paid by a notification of the bank and delivered."""
    observed.post("/v1/webhooks", {"url": observed.shop.url(), "events": ["payment.succeeded"]})
    code = {"amount": 150_000, "currency": "THB", "reference": "order-17", "description": PAYER}
    made = observed.post("/v1/qr-codes", code, traceparent=TRACEPARENT)
    observed.post("/sandbox/v1/payments", {"qr_data": made["qr_data"]})
    wait_until(lambda: bool(delivered(observed)), SECONDS)
    # Web and worker export on their own.
    wait_until(lambda: {span.name for span in observed.spans()} >= OF_A_LIFE, SECONDS)
    return observed.spans()


def delivered(observed: Observed) -> list[ReceivedRequest]:
    return [each for each in list(observed.shop.requests) if b"payment.succeeded" in each.body]


def attributes(span: Span) -> dict[str, str]:
    return {each.key: each.value.string_value for each in span.attributes}


def test_one_trace_holds_creation_bank_notification_and_delivery(
    observed: Observed, life: list[Span]
) -> None:
    (sent,) = delivered(observed)
    version, trace, span_id, _flags = sent.headers["traceparent"].split("-")
    assert (version, trace) == ("00", TRACE)
    spans = {span.name: span for span in life if span.trace_id.hex() == TRACE}
    created, paid = spans["POST /v1/qr-codes"], spans["payment.succeeded"]
    assert created.parent_span_id.hex() == "00f067aa0ba902b7"
    assert attributes(paid)["thaiqr.actor"] == "bank:sandbox"
    (link,) = paid.links
    (notified,) = [span for span in life if span.span_id == link.span_id]
    assert notified.name == NOTIFICATION
    assert spans["webhook delivery"].parent_span_id == paid.span_id
    assert spans["webhook delivery"].span_id.hex() == span_id
    assert spans["webhook delivery"].start_time_unix_nano >= paid.start_time_unix_nano


@pytest.mark.usefixtures("life")
def test_measurements_are_exported_as_metrics(observed: Observed) -> None:
    expected = {"thaiqr.http_request.duration", "thaiqr.task.duration"}
    wait_until(lambda: expected <= observed.metric_names(), SECONDS)


def run_sql(observed: Observed, sql: str) -> None:
    with psycopg.connect(observed.stack.owner_url, autocommit=True) as connection:
        connection.execute(sql)


@pytest.fixture(scope="module")
def reported(observed: Observed) -> list[dict[str, Any]]:
    """The reports after a request and a task that met a missing table."""
    for table in TABLES:
        run_sql(observed, f"ALTER TABLE {table} RENAME TO {table}_gone")
    try:
        response = requests.get(
            f"{observed.stack.base_url}/v1/requests?note={PAYER}",
            headers={"Authorization": f"Bearer {observed.stack.secret_key}"},
            timeout=30,
        )
        assert response.status_code == 500
        observed.stack.manage("shell", "-c", SEND_TASK)
        wait_until(lambda: len(errors_by_logger(observed)) >= 2, SECONDS)
    finally:
        for table in TABLES:
            run_sql(observed, f"ALTER TABLE {table}_gone RENAME TO {table}")
    return observed.error_reports()


# What the request and the task read.
TABLES = ("request_log_requestrecord", "idempotency_idempotencykey")
SEND_TASK = "from config.celery import app; app.send_task('idempotency.delete_expired', queue='default')"


def errors_by_logger(observed: Observed) -> set[str]:
    return {each["logger"] for each in observed.error_reports()}


def test_unhandled_error_of_web_and_worker_is_reported_once(reported: list[dict[str, Any]]) -> None:
    by_logger = {
        name: [each for each in reported if each["logger"] == name] for name in ("api", "celery.app.trace")
    }
    for name, reports in by_logger.items():
        assert len(reports) == 1, (name, reports)
        (error,) = [each for each in reports[0]["exception"]["values"] if each["type"] == "UndefinedTable"]
        assert error["stacktrace"]["frames"]
        assert reports[0]["release"] and reports[0]["tags"]["request_id"]


@pytest.mark.usefixtures("life", "reported")
def test_nothing_personal_or_secret_is_exported(observed: Observed) -> None:
    sent = observed.sent().decode("latin-1")
    assert "order-17" not in sent
    for secret in (PAYER, observed.stack.secret_key, *observed.stack.env.values()):
        if len(secret) > 20 and not secret.startswith(("http://127.", "/")) and "config" not in secret:
            assert secret not in sent
    assert PAYER not in sent
    for report in observed.error_reports():
        assert not report.keys() & {"request", "user", "extra", "breadcrumbs", "modules", "contexts"}


@pytest.mark.usefixtures("life", "reported")
def test_all_processes_write_lines_of_json(observed: Observed) -> None:
    observed.stack.restart("web")
    wait_until(observed.stack.is_ready, SECONDS)
    lines = observed.stack.log.read_text().splitlines()
    ours = [line.split(" | ", 1) for line in lines if line.startswith(("web ", "worker ", "bank "))]
    kinds = {json.loads(text)["log"] for _, text in ours if not text.startswith("ended with")}
    assert "access" in kinds
    assert {name.strip() for name, _ in ours} >= {"web", "worker"}
    for _, text in ours:
        if not text.startswith("ended with"):
            assert {"at", "log", "request_id"} <= json.loads(text).keys(), text


def test_numbers_of_all_processes_are_on_one_page(observed: Observed) -> None:
    """Two web processes answer; whichever is asked shows what both measured."""
    before = counted(observed)
    for _ in range(20):
        requests.get(f"{observed.stack.base_url}/healthz", timeout=30)
    wait_until(lambda: counted(observed) == before + 20, SECONDS)
    page = requests.get(f"{observed.stack.base_url}/metrics", timeout=30).text
    assert {"web-0", "web-1", "worker"} <= set(re.findall(r'memory_bytes{.*process="([^"]+)"', page))


def counted(observed: Observed) -> float:
    page = requests.get(f"{observed.stack.base_url}/metrics", timeout=30).text
    series = 'thaiqr_http_requests_total{method="GET",route="/healthz",status="200"}'
    return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith(series))
