"""Run a request once per key: the key, the work and the stored answer commit together or not at all.

The database is the lock. A duplicate waits on the unique index until the first one commits (bounded by
`lock_timeout`), then finds the stored answer. No lock with a time to live, no second store. Only a job that
asks somebody outside commits twice (see `TwoPhases`): its duplicates wait for the second commit.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Generic, TypeVar

from django.db import DatabaseError, IntegrityError, OperationalError, transaction
from django.db.models import Model

from core import clock, rows
from core.errors import ServiceUnavailable
from core.http import Answer
from core.slots import NoFreeSlot, Slots
from idempotency import keys
from idempotency.errors import IdempotencyKeyInProgress
from idempotency.keys import Claim
from idempotency.models import UNDER_WAY, IdempotencyKey

DEADLOCK, SERIALIZATION, LOCK_TIMEOUT = "40P01", "40001", "55P03"
TRIES = 3
# A duplicate of a request that is asking somebody outside: how long it waits, how often it looks.
PATIENCE_SECONDS = 5.0
LOOK_SECONDS = 0.1
# So many duplicates of one process wait that long, and so many of one merchant; the others wait this long.
# Each holds a thread of the web server.
WAITING, WAITING_OF_MERCHANT = 8, 4
SHORT_PATIENCE_SECONDS = 0.5
_waiting = Slots()
T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Draft:
    """A job whose rows are all known beforehand: they go in by one statement, then `then` is called."""

    answer: Answer
    rows: Sequence[Model]
    then: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class TwoPhases(Generic[S]):
    """A job that asks somebody outside, between two commits of its own.

    admit: take the slot that the call needs and give it back when the stack ends, or raise the refusal; then
    nothing is stored. prepare: the work of the first commit, which also commits the key. perform: the call,
    with no transaction open.
    finish: the work of the second, with what `perform` said; its answer is stored if it is a 2xx or a 402,
    and any other leaves the key free. resume: after a crash in between, the answer from how the subject
    stands. seconds: how long `perform` takes at most; a request that is older has crashed.
    """

    subject_id: str
    seconds: float
    admit: Callable[[ExitStack], object]
    prepare: Callable[[], object]
    perform: Callable[[], S]
    finish: Callable[[S], Answer]
    resume: Callable[[str], Answer]


# What a request is to do once: a draft, work that runs in the one transaction and gives the answer, or both
# sides of a call.
Job = Draft | TwoPhases[Any] | Callable[[], Answer]


def look_up(claim: Claim) -> Answer | None:
    """The stored answer of this key, None if there is none. Raises IdempotencyKeyReused."""
    found = keys.find(claim)
    return None if found is None or found.status == UNDER_WAY else keys.replay(found, claim)


def run_without_key(job: Job) -> Answer:
    """The job by itself, in one commit or in its two."""
    if isinstance(job, Draft):
        _insert(job.rows, job)
        return job.answer
    if isinstance(job, TwoPhases):
        with ExitStack() as held:
            job.admit(held)
            _in_one_commit(job.prepare)
            said = job.perform()
            return _in_one_commit(lambda: job.finish(said))
    return _in_one_commit(job)


def run_once(claim: Claim, job: Job) -> Answer:
    """The job and its key in one commit, or the answer of whoever was first.

    Raises IdempotencyKeyReused, IdempotencyKeyInProgress, and what the job raises (then nothing is stored).
    """
    if isinstance(job, TwoPhases):
        return _call_once(claim, job)
    if isinstance(job, Draft):
        return _patiently(partial(_insert_once, claim, job))
    return _patiently(partial(_work_once, claim, job))


def _patiently(work: Callable[[], T]) -> T:
    """The work, again where the database asks for it. Raises IdempotencyKeyInProgress, ServiceUnavailable."""
    for _ in range(TRIES):
        try:
            return work()
        except OperationalError as error:
            if _state(error) == LOCK_TIMEOUT:
                raise IdempotencyKeyInProgress(retry_after=1) from None
            if _state(error) not in (DEADLOCK, SERIALIZATION):
                raise
    raise ServiceUnavailable(retry_after=1)


def _in_one_commit(work: Callable[[], T]) -> T:
    with transaction.atomic():
        return work()


def _insert_once(claim: Claim, draft: Draft) -> Answer:
    try:
        _insert([claim.row(draft.answer), *draft.rows], draft)
    except IntegrityError as error:
        if _constraint(error) != "idempotency_key_once_per_merchant":
            raise
        # Somebody was first, or an expired row is in the way: the longer way knows both.
        return _work_once(claim, lambda: _inserted(draft))
    return draft.answer


def _inserted(draft: Draft) -> Answer:
    _insert(draft.rows, draft)
    return draft.answer


def _insert(new_rows: Sequence[Model], draft: Draft) -> None:
    rows.insert_together(new_rows)
    if draft.then is not None:
        transaction.on_commit(draft.then, robust=True)


@transaction.atomic
def _work_once(claim: Claim, work: Callable[[], Answer]) -> Answer:
    if not keys.take(claim):
        found = keys.find(claim)
        if found is None or found.status == UNDER_WAY:
            raise IdempotencyKeyInProgress(retry_after=1)
        return keys.replay(found, claim)
    answer = work()
    keys.keep(claim, answer)
    return answer


def _call_once(claim: Claim, job: TwoPhases[S]) -> Answer:
    """Each turn begins with the key free: a request whose answer is not kept lets go of it."""
    began = time.monotonic()
    while True:
        with ExitStack() as held:
            if _patiently(partial(_begin, claim, job, held)):
                return _patiently(partial(_end, claim, job, job.perform()))
        answer = _wait_for_another(claim, job, began)
        if answer is not None:
            return answer
        # Whoever waits for us judges by the key's age whether we have crashed.
        claim = replace(claim, now=clock.now())


@transaction.atomic
def _begin(claim: Claim, job: TwoPhases[S], held: ExitStack) -> bool:
    """Admission comes after the key: a duplicate needs no slot, and a refusal rolls the key back."""
    held.close()  # what an attempt that the database refused has taken
    is_ours = keys.take(claim, job.subject_id)
    if is_ours:
        job.admit(held)
        job.prepare()
    return is_ours


@transaction.atomic
def _end(claim: Claim, job: TwoPhases[S], said: S) -> Answer:
    # The key before the subject, as everywhere: the order of locks.
    is_ours = keys.hold(claim, job.subject_id)
    answer = job.finish(said)
    if is_ours and (200 <= answer.status < 300 or answer.status == 402):
        keys.keep(claim, answer)
    elif is_ours:
        keys.free(claim)
    return answer


def _wait_for_another(claim: Claim, job: TwoPhases[S], began: float) -> Answer | None:
    """As `_answer_of_another`. Raises IdempotencyKeyInProgress early where many wait already."""
    try:
        with _waiting.held(claim.merchant.id, total=WAITING, share=WAITING_OF_MERCHANT):
            return _answer_of_another(claim, job, began + PATIENCE_SECONDS)
    except NoFreeSlot:
        return _answer_of_another(claim, job, began + SHORT_PATIENCE_SECONDS)


def _answer_of_another(claim: Claim, job: TwoPhases[S], deadline: float) -> Answer | None:
    """What the one who was first answers, or would have; None when the key is free again.

    Raises IdempotencyKeyInProgress, IdempotencyKeyReused.
    """
    while (found := keys.find(claim)) is not None:
        if found.status != UNDER_WAY:
            return keys.replay(found, claim)
        if clock.now() - found.created_at >= timedelta(seconds=job.seconds):
            answer = job.resume(found.subject_id)
            return Answer(answer.status, answer.body, answer.headers | keys.REPLAYED)
        if time.monotonic() >= deadline:
            raise IdempotencyKeyInProgress(retry_after=1)
        time.sleep(LOOK_SECONDS)
    return None


def _state(error: DatabaseError) -> str | None:
    return getattr(error.__cause__, "sqlstate", None)


def _constraint(error: DatabaseError) -> str | None:
    diagnosis = getattr(error.__cause__, "diag", None)
    return getattr(diagnosis, "constraint_name", None)


def forget_expired(*, now: datetime, batch: int = 1000) -> int:
    """Delete keys that no longer count; returns how many."""
    forgotten, expired = 0, IdempotencyKey.objects.filter(expires_at__lte=now)
    while True:
        # Judged again by the DELETE itself: a row may be taken over while it waits for its lock.
        deleted, _ = expired.filter(pk__in=list(expired.values_list("pk", flat=True)[:batch])).delete()
        forgotten += deleted
        if deleted < batch:
            return forgotten
