"""Write down what came back: of each attempt, of its delivery, and what it says of the endpoint."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, transaction

from core import rows
from webhooks import acts, breaker, client, endpoints, schedule, tallies
from webhooks.leases import Lease
from webhooks.models import Act, Attempt, DeliveryState, DisabledReason, Health, Trigger

log = logging.getLogger("webhooks.notes")
GONE = 410
HEALTH_FIELDS = [field.attname for field in Health._meta.concrete_fields if not field.primary_key]


@dataclass(frozen=True, slots=True)
class Result:
    """One post that ended."""

    lease: Lease
    answer: client.Answer
    began: datetime
    ended: datetime
    request_id: str = ""


def note(results: Sequence[Result]) -> set[str]:
    """Write all of it down in one commit. Returns the deliveries whose lease still held.

    Of the others only the attempt is kept: somebody else has them. Disables endpoints that are gone, or have
    failed for too long.
    """
    with transaction.atomic():
        held = _note_deliveries(results)
        attempts = Attempt.objects.bulk_create([_attempt(each) for each in results])
        to_disable = _note_health(results)
        tallies.count(attempts)
    for result, reason in to_disable:
        _disable(result, reason)
    return held


def _disable(result: Result, reason: DisabledReason) -> None:
    """In a commit of its own: everybody locks an endpoint before its health."""
    try:
        endpoints.disable(
            endpoint_id=_endpoint_id(result), reason=reason, now=result.ended, judged_by=result.began
        )
    except DatabaseError as error:
        # All else is noted; the next attempt that fails finds the same reason.
        log.warning("endpoint %s was not disabled: %s", _endpoint_id(result), type(error).__name__)


def _note_deliveries(results: Sequence[Result]) -> set[str]:
    outcomes = [_outcome(each) for each in results]
    noted = rows.run(
        """
        UPDATE webhooks_delivery d
        SET state = n.state, due_at = coalesce(n.due_at, d.due_at), finished_at = n.finished_at,
            lease_id = NULL, lease_until = NULL
        FROM unnest(%s::text[], %s::uuid[], %s::text[], %s::timestamptz[], %s::timestamptz[])
            n (id, lease_id, state, due_at, finished_at)
        WHERE d.id = n.id AND d.state = 'leased' AND d.lease_id = n.lease_id
        RETURNING d.id
        """,
        [list(column) for column in zip(*outcomes, strict=True)],
    )
    return {delivery_id for (delivery_id,) in noted.fetchall()}


def _outcome(result: Result) -> tuple[Any, ...]:
    """The delivery, its lease, its new state, when it is due again and when it finished."""
    state, due_at = _next(result)
    is_over = state in {DeliveryState.SUCCEEDED, DeliveryState.FAILED}
    lease = result.lease
    return lease.delivery_id, lease.lease_id, state.value, due_at, result.ended if is_over else None


def _next(result: Result) -> tuple[DeliveryState, datetime | None]:
    lease, answer = result.lease, result.answer
    if answer.error == "":
        return DeliveryState.SUCCEEDED, None
    if lease.trigger == Trigger.MANUAL:
        return DeliveryState.FAILED, None
    wait = schedule.wait_after(
        lease.attempt, pace=settings.WEBHOOK_PACE, retry_after=answer.retry_after, now=result.ended
    )
    if wait is None or answer.error == "blocked":
        return DeliveryState.FAILED, None
    return DeliveryState.PENDING, result.ended + timedelta(seconds=wait)


def _attempt(result: Result) -> Attempt:
    lease, answer = result.lease, result.answer
    return Attempt(
        delivery_id=lease.delivery_id,
        number=lease.attempt,
        trigger=lease.trigger,
        started_at=result.began,
        duration_ms=answer.duration_ms,
        status=answer.status,
        error=answer.error,
        peer=answer.peer or "",
        excerpt=answer.excerpt,
        request_id=result.request_id,
    )


def _note_health(results: Sequence[Result]) -> list[tuple[Result, DisabledReason]]:
    """Returns whom to disable, each with the attempt that says so."""
    asked = sorted({_endpoint_id(each) for each in results})
    known = Health.objects.select_for_update(no_key=True).filter(pk__in=asked).order_by("pk").in_bulk()
    healths = {endpoint_id: known.get(endpoint_id, Health(endpoint_id=endpoint_id)) for endpoint_id in asked}
    reasons: dict[str, tuple[Result, DisabledReason]] = {}
    for each in results:
        health = healths[_endpoint_id(each)]
        health.attempted_at = each.ended
        if breaker.is_forgotten(health, each.began):
            continue
        _judge(health, each)
        if each.answer.status == GONE:
            reasons[_endpoint_id(each)] = (each, DisabledReason.GONE)
        elif breaker.is_hopeless(health, each.ended):
            reasons.setdefault(_endpoint_id(each), (each, DisabledReason.FAILING))
    Health.objects.bulk_create(
        healths.values(), update_conflicts=True, unique_fields=["endpoint"], update_fields=HEALTH_FIELDS
    )
    return list(reasons.values())


def _judge(health: Health, result: Result) -> None:
    act = breaker.note(
        health,
        error=result.answer.error,
        duration_ms=result.answer.duration_ms,
        began=result.began,
        now=result.ended,
        pace=settings.WEBHOOK_PACE,
    )
    if health.verified_at is None and result.answer.error == "":
        health.verified_at = result.ended
        acts.note(_endpoint_id(result), Act.VERIFIED, actor=acts.SYSTEM, at=result.ended)
    if act is not None:
        why = breaker.why(health) if act is Act.PAUSED else ""
        acts.note(_endpoint_id(result), act, actor=acts.SYSTEM, at=result.ended, detail=why)


def _endpoint_id(result: Result) -> str:
    endpoint_id: str = result.lease.endpoint.id
    return endpoint_id
