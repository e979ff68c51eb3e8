"""`/metrics`: how well the service does its work, in Prometheus text.

Read from the database, so that every web process says the same. What only grows is counted as it happens
(`webhooks.tallies`), and what waits is counted up to a limit (`webhooks.backlog`).
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import DatabaseError
from django.db.models import Count, Min, Q, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from approvals.models import Approval, Kind
from console import health
from console import openapi as docs
from console.monitoring import for_monitoring
from core import clock
from core.methods import safe_only
from payments.card_models import OPEN
from payments.models import CardCharge, Payment, Status
from receipts.models import ConfirmationInquiry, Inquiry, Receipt, Waiting, Why
from receipts.models.waiting import COUNTED
from transactions import accounts, ledger
from transfers.models import CircuitBreaker, Transfer
from transfers.schedule import OVERDUE
from webhooks import backlog, leases, tallies
from webhooks.models import Counted, Endpoint, EndpointStatus, Tally
from withdrawals.models import Withdrawal

# A sweep comes each second.
LATE = timedelta(minutes=1)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Database(Collector):
    """All metrics, read anew for each scrape."""

    def collect(self) -> Iterator[Metric]:
        """Without the database only that it is away: everything else is counted there."""
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
        yield from _outgoing(now)
        yield from _for_staff()
        yield from _approvals(now)
        yield from _debts()
        yield from _backlog(now)
        yield from _attempts()
        yield _endpoints()
        yield _clock()


REGISTRY = CollectorRegistry()
REGISTRY.register(Database())


@docs.metrics
@for_monitoring
@safe_only
def metrics(request: HttpRequest) -> HttpResponse:
    return HttpResponse(generate_latest(REGISTRY), content_type=CONTENT_TYPE)


def _clock() -> Metric:
    return GaugeMetricFamily(
        "clock_difference_seconds",
        "By which the database's clock is ahead of this process's; negative if it is behind.",
        health.clock_difference(),
    )


def _payments(now: datetime) -> Iterator[Metric]:
    overdue = Payment.objects.overdue(now).count()
    pending = Payment.objects.filter(status=Status.PENDING).count()
    yield GaugeMetricFamily("payments_pending", "Payments that wait for the bank.", pending - overdue)
    yield GaugeMetricFamily("payments_overdue", "Payments that the sweep has not expired yet.", overdue)


def _inquiries(now: datetime) -> Iterator[Metric]:
    due = Inquiry.objects.filter(due_at__lte=now)
    late = due.filter(due_at__lte=now - LATE)
    yield GaugeMetricFamily("inquiries_due", "Payments that their bank is to be asked about.", due.count())
    asked = ConfirmationInquiry.objects.filter(due_at__isnull=False)
    for name, help_text, waiting in [
        ("confirmations_due", "Money of files that banks are asked about", asked.filter(notice=None)),
        ("notifications_unconfirmed", "Unsigned notifications to be confirmed", asked.exclude(notice=None)),
    ]:
        yield GaugeMetricFamily(name, f"{help_text}. Counted up to {COUNTED}.", waiting[:COUNTED].count())
    yield GaugeMetricFamily("inquiries_overdue", "Of these, since a minute or longer.", late.count())


def _card_charges(now: datetime) -> Iterator[Metric]:
    """By the index of open charges, however many have ended."""
    pending = CardCharge.objects.filter(state__in=OPEN).order_by("created_at")
    oldest = pending.values_list("created_at", flat=True).first()
    age = 0.0 if oldest is None else max((now - oldest).total_seconds(), 0.0)
    count = pending[:COUNTED].count()
    help_text = f"Card charges whose acquirer has not said its last word. Counted up to {COUNTED}."
    yield GaugeMetricFamily("card_charges_pending", help_text, count)
    yield GaugeMetricFamily("card_charges_oldest_pending_seconds", "Age of the oldest of these.", age)


def _outgoing(now: datetime) -> Iterator[Metric]:
    overdue = Transfer.objects.open_since(now - OVERDUE)[:COUNTED].count()
    help_text = f"Transfers without a last word for too long. Counted up to {COUNTED}."
    yield GaugeMetricFamily("transfers_overdue", help_text, overdue)
    rest = GaugeMetricFamily(
        "circuit_breakers_open", "Banks and acquirers that are silent and rest.", labels=["route"]
    )
    resting = CircuitBreaker.objects.filter(open_until__gt=now).values_list("route")
    for route, count in resting.annotate(count=Count("pk")).order_by("route"):
        rest.add_metric([route], count)
    yield rest


def _for_staff() -> Iterator[Metric]:
    listed, messages = Waiting.objects, [Why.CONFLICT, Why.UNREADABLE, Why.UNCONFIRMED]
    money = listed.exclude(why__in=[*messages, Why.RETURNED, Why.CONTRADICTION])
    not_judged, unconfirmed = Receipt.objects.not_judged(), Receipt.objects.unconfirmed()
    for name, help_text, live, sandbox in [
        (
            "receipts_not_applied",
            "Receipts stored but not judged.",
            not_judged.exclude(bank=accounts.SANDBOX),
            not_judged.filter(bank=accounts.SANDBOX),
        ),
        (
            "receipts_unconfirmed",
            "Credits that only a statement reports.",
            unconfirmed.exclude(bank=accounts.SANDBOX),
            unconfirmed.filter(bank=accounts.SANDBOX),
        ),
        ("receipts_for_staff", "Receipts that wait for a person.", *_live_and_sandbox(money)),
        (
            "notices_for_staff",
            "Bank messages that wait for a person.",
            *_live_and_sandbox(listed.filter(why__in=messages)),
        ),
        (
            "contradictions_for_staff",
            "Banks contradict our records, and staff have to act.",
            *_live_and_sandbox(listed.filter(why=Why.CONTRADICTION)),
        ),
        (
            "refunds_returned",
            "Refunds whose money came back.",
            *_live_and_sandbox(listed.filter(why=Why.RETURNED)),
        ),
    ]:
        family = GaugeMetricFamily(name, f"{help_text} Counted up to {COUNTED}.", labels=["money"])
        family.add_metric(["live"], live[:COUNTED].count())
        family.add_metric(["sandbox"], sandbox[:COUNTED].count())
        yield family


def _approvals(now: datetime) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "approvals_waiting", "Outgoing money that waits for a second person.", labels=["kind"]
    )
    waiting = Approval.objects.waiting()
    counts = dict(waiting.order_by().values_list("kind").annotate(Count("pk")))
    for kind in Kind.values:
        family.add_metric([kind], counts.get(kind, 0))
    yield family
    oldest = waiting.aggregate(at=Min("requested_at"))["at"]
    yield GaugeMetricFamily(
        "approvals_oldest_waiting_seconds",
        "Age of the oldest request that waits for a second person; 0 if none waits.",
        0.0 if oldest is None else (now - oldest).total_seconds(),
    )


def _live_and_sandbox(listed: "QuerySet[Waiting]") -> "tuple[QuerySet[Waiting], QuerySet[Waiting]]":
    """Money of the sandbox bank is not real, and no alert may ring for it."""
    return listed.filter(is_sandbox=False), listed.filter(is_sandbox=True)


def _debts() -> Iterator[Metric]:
    debts = ledger.debts()
    held = Withdrawal.objects.held(debts).aggregate(count=Count("pk"), satang=Sum("amount", default=0))
    for name, help_text, value in [
        ("merchants_in_debt", "Merchants whose balance is negative after a reversal.", len(debts)),
        ("merchant_debt_satang", "What they owe, in satang.", sum(debts.values())),
        ("withdrawals_held", "Their withdrawals that no bank is told of.", held["count"]),
        ("withdrawals_held_satang", "The sum of these, in satang.", held["satang"]),
    ]:
        yield GaugeMetricFamily(name, help_text, value)


def _backlog(now: datetime) -> Iterator[Metric]:
    waiting = backlog.count(now)
    due = GaugeMetricFamily(
        "webhook_deliveries_due",
        f"Deliveries that wait for a worker (due), or for an endpoint that is paused or unverified (paused); "
        f"counted up to {backlog.COUNTED}.",
        labels=["state"],
    )
    due.add_metric(["due"], waiting.due)
    due.add_metric(["paused"], waiting.paused)
    yield due
    yield GaugeMetricFamily(
        "webhook_oldest_due_seconds",
        "Age of the oldest due delivery that no worker took; without paused and unverified endpoints.",
        backlog.oldest_due_seconds(now),
    )


def _attempts() -> Iterator[Metric]:
    known = list(Tally.objects.all())
    attempts = [tally for tally in known if tally.what == Counted.ATTEMPT]
    outcomes = dict.fromkeys([tallies.SUCCEEDED, leases.WORKER_LOST], 0)
    for tally in attempts:
        outcomes[tally.outcome] = outcomes.get(tally.outcome, 0) + tally.count
    total = CounterMetricFamily("webhook_attempts", "Attempts to deliver, by outcome.", labels=["outcome"])
    for outcome, count in sorted(outcomes.items()):
        total.add_metric([outcome], count)
    yield total
    yield _durations(attempts)
    lost = sum(tally.count for tally in known if tally.what == Counted.BELL)
    yield CounterMetricFamily("webhook_doorbell_failures", "Rings that did not reach the workers.", lost)


def _durations(attempts: list[Tally]) -> Metric:
    counts = {
        bound: sum(tally.count for tally in attempts if 0 < tally.within_ms <= bound)
        for bound in tallies.BOUNDS_MS
    }
    buckets = [(str(bound / 1000), float(count)) for bound, count in counts.items()]
    buckets[-1] = ("+Inf", buckets[-1][1])
    return HistogramMetricFamily(
        "webhook_attempt_seconds",
        "How long attempts took, until the answer or the fault.",
        buckets=buckets,
        sum_value=sum(tally.total_ms for tally in attempts) / 1000,
    )


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
