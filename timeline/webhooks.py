"""Webhook deliveries: attempts, redeliveries, and deliveries that are held or dropped."""

from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Greatest
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from core.clock import iso
from timeline.entries import CLOCK, EntrySource, PaymentContext, TimelineEntry, TimelineEntryType
from webhooks.models import (
    UNFINISHED_STATES,
    Delivery,
    DeliveryAttempt,
    DeliveryState,
    DeliveryTrigger,
    DisabledReason,
    EndpointAction,
    EndpointActionType,
    EndpointStatus,
)


def resends(context: PaymentContext) -> EntrySource:
    """Redeliveries and replays. Of several replays of one delivery only the last is stored."""
    return EntrySource(_deliveries(context).filter(requested_at__isnull=False), "requested_at", _resend_entry)


def held(context: PaymentContext) -> EntrySource:
    """Deliveries held for a replay, from the time when they began or the webhook was disabled."""
    # A pending delivery of a disabled endpoint counts as held: a worker will hold it and not send it.
    is_disabled = Q(endpoint__status=EndpointStatus.DISABLED, endpoint__deleted_at=None)
    is_held = Q(state=DeliveryState.HELD) | is_disabled & Q(state=DeliveryState.PENDING, manual_number=0)
    rows = _deliveries(context).filter(is_held).annotate(begun_at=Greatest("created_at", "requested_at"))
    disabled = _disabled().values
    rows = rows.annotate(
        held_at=Greatest("begun_at", Subquery(disabled("created_at")[:1])),
        reason=Subquery(disabled("detail")[:1]),
        disabled_by=Subquery(disabled("actor")[:1]),
    )
    return EntrySource(_with_actor(rows, "held_at"), "held_at", _held_entry)


def attempts(context: PaymentContext) -> EntrySource:
    """The actor of a scheduled attempt is the clock; of a manual one, who asked for it."""
    attempts = DeliveryAttempt.objects.filter(delivery__event__subject_id__in=_subject_ids(context))
    later = DeliveryAttempt.objects.filter(delivery=OuterRef("delivery"), pk__gt=OuterRef("pk"))
    rows = attempts.select_related("delivery__event").annotate(is_last=~Exists(later))
    return EntrySource(rows.defer("excerpt", "delivery__event__body"), "started_at", _attempt_entry)


def dropped(context: PaymentContext) -> EntrySource:
    """Deliveries that ended because the webhook was deleted, or disabled before a redelivery."""
    is_dropped = Q(endpoint__deleted_at__lte=F("finished_at")) | Q(manual_number__gt=0, attempt_count=0)
    rows = _deliveries(context).filter(is_dropped, state=DeliveryState.FAILED)
    return EntrySource(_with_actor(rows, "finished_at"), "finished_at", _dropped_entry)


def _subject_ids(context: PaymentContext) -> list[str]:
    return [context.payment.pk, *context.refund_ids, *context.movement_ids]


def _deliveries(context: PaymentContext) -> QuerySet[Any]:
    rows: QuerySet[Any] = Delivery.objects.filter(event__subject_id__in=_subject_ids(context))
    return rows.select_related("event", "endpoint").defer("event__body")


def _disabled() -> QuerySet[EndpointAction]:
    """The first disabling of a delivery's endpoint that was still in force when the delivery began."""
    actions = EndpointAction.objects.filter(endpoint=OuterRef("endpoint"))
    enabled_again = actions.filter(
        type=EndpointActionType.ENABLED, pk__gt=OuterRef("pk"), created_at__lte=OuterRef(OuterRef("begun_at"))
    )
    return actions.filter(~Exists(enabled_again), type=EndpointActionType.DISABLED).order_by("pk")


def _with_actor(rows: QuerySet[Any], at: str) -> QuerySet[Any]:
    """Annotate the actor that disabled or deleted the webhook at the instant `at`, or null."""
    action = EndpointAction.objects.filter(
        endpoint=OuterRef("endpoint"),
        type__in=[EndpointActionType.DISABLED, EndpointActionType.DELETED],
        created_at=OuterRef(at),
    ).order_by("-pk")
    actor, request_id = (Subquery(action.values(name)[:1]) for name in ("actor", "request_id"))
    annotated: QuerySet[Any] = rows.annotate(action_actor=actor, action_request_id=request_id)
    return annotated


def _actor_and_request(delivery: Any) -> tuple[str, str]:
    """Return the clock if no action caused it, and an empty actor if the action has no actor."""
    return CLOCK if delivery.action_actor is None else delivery.action_actor, delivery.action_request_id or ""


def _resend_entry(delivery: Any) -> TimelineEntry:
    summary, details = _("%(event)s will be resent."), _delivery_details(delivery)
    caused_by = delivery.actor, delivery.request_id
    return TimelineEntry(
        delivery.requested_at, TimelineEntryType.RESEND, summary % details, *caused_by, details
    )


def _held_entry(delivery: Any) -> TimelineEntry:
    reason = delivery.reason or delivery.endpoint.disabled_reason
    label = DisabledReason(reason).label if reason else gettext_noop("The webhook is disabled")
    words = {"event": delivery.event.type, "reason": gettext(label).lower()}
    summary = _("%(event)s is held for a replay: %(reason)s.") % words
    details = {**_delivery_details(delivery), "reason": reason}
    internal = {"disabled_by": delivery.disabled_by or ""}
    return TimelineEntry(
        delivery.held_at, TimelineEntryType.HELD, summary, *_actor_and_request(delivery), details, internal
    )


def _attempt_entry(attempt: Any) -> TimelineEntry:
    delivery = attempt.delivery
    will_retry = attempt.is_last and delivery.state in UNFINISHED_STATES
    details = {
        **_delivery_details(delivery),
        "number": attempt.number,
        "http_status": attempt.status,
        "duration_ms": attempt.duration_ms,
        "error": attempt.error or None,
        "next_attempt_at": iso(delivery.due_at) if will_retry else None,
    }
    is_manual = attempt.trigger == DeliveryTrigger.MANUAL
    actor, request_id = (delivery.actor, delivery.request_id) if is_manual else (CLOCK, attempt.request_id)
    summary = _("%(event)s is sent: %(http_status)s in %(duration_ms)s ms.")
    if attempt.status is None:
        summary = _("%(event)s is sent: %(error)s.")
    return TimelineEntry(
        attempt.started_at, TimelineEntryType.ATTEMPT, summary % details, actor, request_id, details
    )


def _dropped_entry(delivery: Any) -> TimelineEntry:
    deleted_at = delivery.endpoint.deleted_at
    reason = "deleted" if deleted_at and deleted_at <= delivery.finished_at else "disabled"
    details = {**_delivery_details(delivery), "reason": reason}
    summary = _("%(event)s is not sent: the webhook was %(reason)s.") % details
    return TimelineEntry(
        delivery.finished_at, TimelineEntryType.DROPPED, summary, *_actor_and_request(delivery), details
    )


def _delivery_details(delivery: Delivery) -> dict[str, Any]:
    return {
        "event": delivery.event.type,
        "event_id": delivery.event_id,
        "webhook_id": delivery.endpoint_id,
        "delivery_id": delivery.id,
    }
