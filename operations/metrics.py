"""`/metrics`: the state of the service in the Prometheus text format.

All values come from the database, so every web process returns the same. Counters are stored as they grow;
waiting rows are counted up to a limit (`webhooks.delivery.metrics`).
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import DatabaseError
from django.db.models import Count, Min, Q, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from apidocs import openapi as docs
from approvals.models import Approval, ApprovalKind
from audit_trail.models import AuditRecord, UnchainedRecord
from core import admin_lists, clock
from core.api import get_or_head_only
from ledger import accounts
from ledger import services as ledger
from operations import health
from operations.health import require_monitoring_token
from payments.card_models import OPEN_STATES
from payments.models import CardCharge, Payment, PaymentStatus
from reconciliation.models import (
    BankTransaction,
    ConfirmationInquiry,
    ExceptionReason,
    Inquiry,
    ReconciliationException,
)
from request_log.models import DroppedRequests
from transfers.models import CircuitBreaker, Transfer
from transfers.schedule import OVERDUE_AFTER
from webhooks.delivery import metrics as deliveries
from webhooks.delivery import queue
from webhooks.models import CounterType, DeliveryCounter, Endpoint, EndpointStatus
from withdrawals.models import Withdrawal

# The sweep runs every second.
INQUIRY_OVERDUE_AFTER = timedelta(minutes=1)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class DatabaseCollector(Collector):
    """Reads all metrics for each scrape."""

    def collect(self) -> Iterator[Metric]:
        """All metrics, or only `database_up 0` if the database does not answer."""
        try:
            found = list(self._read())
        except DatabaseError:
            found = []
        yield GaugeMetricFamily("database_up", "Whether the database answers.", bool(found))
        yield from found

    def _read(self) -> Iterator[Metric]:
        now = clock.now()
        yield from _payments(now)
        yield from _inquiries(now)
        yield from _card_charges(now)
        yield from _transfers(now)
        yield from _exceptions()
        yield from _approvals(now)
        yield from _merchant_debts()
        yield from _unchained_records(now)
        yield from _deliveries(now)
        yield from _delivery_attempts()
        yield _endpoints()
        yield _dropped_requests()
        yield _clock_metric()


REGISTRY = CollectorRegistry()
REGISTRY.register(DatabaseCollector())


@docs.metrics
@require_monitoring_token
@get_or_head_only
def metrics(request: HttpRequest) -> HttpResponse:
    return HttpResponse(generate_latest(REGISTRY), content_type=CONTENT_TYPE)


def _clock_metric() -> Metric:
    return GaugeMetricFamily(
        "clock_difference_seconds",
        "Database clock minus process clock, in seconds.",
        health.clock_difference(),
    )


def _payments(now: datetime) -> Iterator[Metric]:
    overdue = Payment.objects.overdue(now).count()
    pending = Payment.objects.filter(status=PaymentStatus.PENDING).count()
    yield GaugeMetricFamily("payments_pending", "Payments without a final status.", pending - overdue)
    yield GaugeMetricFamily("payments_overdue", "Payments past their expiry that are still pending.", overdue)


def _inquiries(now: datetime) -> Iterator[Metric]:
    due = Inquiry.objects.filter(due_at__lte=now)
    late = due.filter(due_at__lte=now - INQUIRY_OVERDUE_AFTER)
    yield GaugeMetricFamily("inquiries_due", "Payments with a due inquiry.", due.count())
    open_inquiries = ConfirmationInquiry.objects.filter(due_at__isnull=False)
    for name, help_text, waiting in [
        (
            "confirmation_inquiries_due",
            "Statement lines with a due confirmation inquiry",
            open_inquiries.filter(notification=None),
        ),
        (
            "notifications_unconfirmed",
            "Unsigned notifications with a due confirmation inquiry",
            open_inquiries.exclude(notification=None),
        ),
    ]:
        yield GaugeMetricFamily(
            name,
            f"{help_text}. Counted up to {admin_lists.MAX_COUNTED}.",
            waiting[: admin_lists.MAX_COUNTED].count(),
        )
    yield GaugeMetricFamily(
        "inquiries_overdue", "Payments whose inquiry is overdue by a minute.", late.count()
    )


def _card_charges(now: datetime) -> Iterator[Metric]:
    """Reads the index of open charges only."""
    pending = CardCharge.objects.filter(state__in=OPEN_STATES).order_by("created_at")
    oldest = pending.values_list("created_at", flat=True).first()
    age = 0.0 if oldest is None else max((now - oldest).total_seconds(), 0.0)
    count = pending[: admin_lists.MAX_COUNTED].count()
    help_text = f"Card charges without a final status. Counted up to {admin_lists.MAX_COUNTED}."
    yield GaugeMetricFamily("card_charges_pending", help_text, count)
    yield GaugeMetricFamily("card_charges_oldest_pending_seconds", "Age of the oldest of these.", age)


def _transfers(now: datetime) -> Iterator[Metric]:
    overdue = Transfer.objects.open_since(now - OVERDUE_AFTER)[: admin_lists.MAX_COUNTED].count()
    help_text = f"Transfers without a final status for too long. Counted up to {admin_lists.MAX_COUNTED}."
    yield GaugeMetricFamily("transfers_overdue", help_text, overdue)
    open_breakers = GaugeMetricFamily(
        "circuit_breakers_open", "Open circuit breakers of banks and acquirers.", labels=["route"]
    )
    breakers = CircuitBreaker.objects.filter(open_until__gt=now).values_list("route")
    for route, count in breakers.annotate(count=Count("pk")).order_by("route"):
        open_breakers.add_metric([route], count)
    yield open_breakers


def _exceptions() -> Iterator[Metric]:
    exceptions = ReconciliationException.objects
    messages = [ExceptionReason.CONFLICT, ExceptionReason.UNREADABLE, ExceptionReason.UNCONFIRMED]
    money = exceptions.exclude(
        reason__in=[*messages, ExceptionReason.RETURNED, ExceptionReason.CONTRADICTION]
    )
    not_matched, unconfirmed = BankTransaction.objects.not_matched(), BankTransaction.objects.unconfirmed()
    for name, help_text, live, sandbox in [
        (
            "bank_transactions_not_matched",
            "Bank transactions that are stored but not applied.",
            not_matched.exclude(bank=accounts.SANDBOX),
            not_matched.filter(bank=accounts.SANDBOX),
        ),
        (
            "bank_transactions_unconfirmed",
            "Credits reported only by a statement.",
            unconfirmed.exclude(bank=accounts.SANDBOX),
            unconfirmed.filter(bank=accounts.SANDBOX),
        ),
        ("bank_transaction_exceptions", "Bank transactions that wait for staff.", *_live_and_sandbox(money)),
        (
            "notification_exceptions",
            "Bank notifications that are exceptions.",
            *_live_and_sandbox(exceptions.filter(reason__in=messages)),
        ),
        (
            "transfer_contradictions",
            "Transfers and charges whose bank contradicts our record.",
            *_live_and_sandbox(exceptions.filter(reason=ExceptionReason.CONTRADICTION)),
        ),
        (
            "refunds_returned_open",
            "Refunds returned by the bank, not yet resolved.",
            *_live_and_sandbox(exceptions.filter(reason=ExceptionReason.RETURNED)),
        ),
    ]:
        family = GaugeMetricFamily(
            name, f"{help_text} Counted up to {admin_lists.MAX_COUNTED}.", labels=["money"]
        )
        family.add_metric(["live"], live[: admin_lists.MAX_COUNTED].count())
        family.add_metric(["sandbox"], sandbox[: admin_lists.MAX_COUNTED].count())
        yield family


def _approvals(now: datetime) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "approvals_waiting", "Outgoing money that waits for approval.", labels=["kind"]
    )
    waiting = Approval.objects.waiting()
    counts = dict(waiting.order_by().values_list("kind").annotate(Count("pk")))
    for kind in ApprovalKind.values:
        family.add_metric([kind], counts.get(kind, 0))
    yield family
    oldest = waiting.aggregate(at=Min("requested_at"))["at"]
    yield GaugeMetricFamily(
        "approvals_oldest_waiting_seconds",
        "Age of the oldest request that waits for approval, or 0.",
        0.0 if oldest is None else (now - oldest).total_seconds(),
    )


def _live_and_sandbox(
    exceptions: "QuerySet[ReconciliationException]",
) -> "tuple[QuerySet[ReconciliationException], QuerySet[ReconciliationException]]":
    """Money of the sandbox bank is not real, so alerts use the live numbers only."""
    return exceptions.filter(is_sandbox=False), exceptions.filter(is_sandbox=True)


def _merchant_debts() -> Iterator[Metric]:
    debts = ledger.debts()
    held = Withdrawal.objects.held(debts).aggregate(count=Count("pk"), satang=Sum("amount", default=0))
    for name, help_text, value in [
        ("merchants_in_debt", "Merchants whose balance is negative after a reversal.", len(debts)),
        ("merchant_debt_satang", "Sum of their negative balances, in satang.", sum(debts.values())),
        ("withdrawals_held", "Withdrawals held back because of a negative balance.", held["count"]),
        ("withdrawals_held_satang", "Sum of held withdrawals, in satang.", held["satang"]),
    ]:
        yield GaugeMetricFamily(name, help_text, value)


def _unchained_records(now: datetime) -> Iterator[Metric]:
    waiting = UnchainedRecord.objects.all()
    oldest = AuditRecord.objects.filter(pk=waiting.order_by("pk").values("pk")[:1]).values_list("created_at")
    age = max(((now - at).total_seconds() for (at,) in oldest), default=0.0)
    yield GaugeMetricFamily(
        "audit_records_unchained",
        f"Audit records without a link in the chain. Counted up to {admin_lists.MAX_COUNTED}.",
        waiting[: admin_lists.MAX_COUNTED].count(),
    )
    yield GaugeMetricFamily("audit_records_oldest_unchained_seconds", "Age of the oldest.", max(age, 0.0))


def _deliveries(now: datetime) -> Iterator[Metric]:
    waiting = deliveries.backlog(now)
    due = GaugeMetricFamily(
        "webhook_deliveries_due",
        f"Deliveries that wait for a worker (due), or for an endpoint that is paused or unverified (paused); "
        f"counted up to {deliveries.MAX_COUNTED}.",
        labels=["state"],
    )
    due.add_metric(["due"], waiting.due)
    due.add_metric(["paused"], waiting.paused)
    yield due
    yield GaugeMetricFamily(
        "webhook_deliveries_oldest_due_seconds",
        "Age of the oldest due delivery that no worker took; without paused and unverified endpoints.",
        deliveries.oldest_due_seconds(now),
    )


def _delivery_attempts() -> Iterator[Metric]:
    known = list(DeliveryCounter.objects.all())
    attempts = [counter for counter in known if counter.type == CounterType.ATTEMPT]
    outcomes = dict.fromkeys([deliveries.SUCCEEDED, queue.WORKER_LOST], 0)
    for counter in attempts:
        outcomes[counter.outcome] = outcomes.get(counter.outcome, 0) + counter.count
    total = CounterMetricFamily(
        "webhook_delivery_attempts", "Attempts to deliver, by outcome.", labels=["outcome"]
    )
    for outcome, count in sorted(outcomes.items()):
        total.add_metric([outcome], count)
    yield total
    yield _attempt_durations(attempts)
    failed_wakeups = sum(counter.count for counter in known if counter.type == CounterType.WAKEUP)
    yield CounterMetricFamily("webhook_wakeup_failures", "Wakeups that did not reach Redis.", failed_wakeups)


def _attempt_durations(attempts: list[DeliveryCounter]) -> Metric:
    counts = {
        bound: sum(counter.count for counter in attempts if 0 < counter.bucket_ms <= bound)
        for bound in deliveries.BUCKETS_MS
    }
    buckets = [(str(bound / 1000), float(count)) for bound, count in counts.items()]
    buckets[-1] = ("+Inf", buckets[-1][1])
    return HistogramMetricFamily(
        "webhook_delivery_attempt_seconds",
        "Duration of delivery attempts.",
        buckets=buckets,
        sum_value=sum(counter.total_ms for counter in attempts) / 1000,
    )


def _dropped_requests() -> Metric:
    dropped = DroppedRequests.objects.aggregate(count=Sum("count"))["count"] or 0
    return CounterMetricFamily("request_log_dropped", "Requests that the request log does not have.", dropped)


def _endpoints() -> Metric:
    is_active, is_paused = Q(status=EndpointStatus.ACTIVE), Q(health__paused_until__isnull=False)
    is_verified = Q(health__verified_at__isnull=False)
    states = Endpoint.objects.filter(deleted_at=None).aggregate(
        active=Count("pk", filter=is_active & is_verified & ~is_paused),
        unverified=Count("pk", filter=is_active & ~is_verified & ~is_paused),
        paused=Count("pk", filter=is_active & is_paused),
        disabled=Count("pk", filter=~is_active),
    )
    family = GaugeMetricFamily("webhook_endpoints", "Registered endpoints.", labels=["state"])
    for state, count in states.items():
        family.add_metric([state], count)
    return family
