"""Run a request once per key: the key, the work and the stored answer commit together or not at all.

The unique index is the lock. A duplicate waits until the first request commits (at most `lock_timeout`), then
replays the stored answer. If the work of a valid request is refused, only its key commits: the same request
runs again, and another one is refused. Only a job with an outside call commits twice (see `TwoPhaseJob`): its
duplicates wait for the second commit.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Generic, TypeVar

from django.db import IntegrityError, OperationalError, transaction
from django.db.models import Model
from psycopg.errors import DeadlockDetected, LockNotAvailable, SerializationFailure, UniqueViolation

from core import clock
from core.database import rows
from core.errors import ApiError, ServiceUnavailable
from core.http.responses import ApiResponse
from core.work.bulkhead import Bulkhead, BulkheadFull
from idempotency import keys
from idempotency.errors import IdempotencyKeyInProgress
from idempotency.keys import KeyedRequest
from idempotency.models import IN_PROGRESS, REFUSED

NO_ANSWER = {IN_PROGRESS, REFUSED}
MAX_TRIES = 3
# How long a duplicate of a request with an outside call waits, and how often it checks.
WAIT_SECONDS = 5.0
POLL_SECONDS = 0.1
# How many duplicates may wait for WAIT_SECONDS, per process and per merchant: each one holds a web thread.
# Further duplicates wait for SHORT_WAIT_SECONDS.
MAX_WAITING, MAX_WAITING_PER_MERCHANT = 8, 4
SHORT_WAIT_SECONDS = 0.5
_waiting_slots = Bulkhead()
# Checks the expiry again, because another request may have taken the row over.
DELETE_EXPIRED = """
DELETE FROM idempotency_idempotencykey WHERE expires_at <= %(now)s AND ctid = ANY(ARRAY(
    SELECT ctid FROM idempotency_idempotencykey WHERE expires_at <= %(now)s
    ORDER BY expires_at LIMIT %(batch)s
))
"""
T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class InsertJob:
    """A job that only inserts rows: one statement, then `on_commit`."""

    answer: ApiResponse
    rows: Sequence[Model]
    on_commit: Callable[[], None] | None = None
    # Called if a unique index refuses the rows. It raises a refusal, or makes room; then they are inserted.
    on_conflict: Callable[[IntegrityError], None] | None = None


@dataclass(frozen=True, slots=True)
class TwoPhaseJob(Generic[S]):
    """A job with an external call between two commits."""

    subject_id: str
    seconds: float  # the longest time of `perform`; an older request has crashed
    # Takes the slot for the call until the stack ends, or raises a refusal; then nothing is stored.
    admit: Callable[[ExitStack], object]
    prepare: Callable[[], object]  # the work of the first commit, which also commits the key
    perform: Callable[[], S]  # the call, without an open transaction
    # The work of the second commit. A 2xx or 402 is stored; after any other answer the key is free.
    finish: Callable[[S], ApiResponse]
    resume: Callable[[str], ApiResponse]  # by the state of the subject, after a crash between the commits


# The work of a request: insert rows, make an object of the API in one transaction, or run before and after an
# external call.
Job = InsertJob | TwoPhaseJob[Any] | Callable[[], Mapping[str, object]]


def find_answer(keyed_request: KeyedRequest) -> ApiResponse | None:
    """The stored answer of this key, or None. Raises IdempotencyKeyReused."""
    found = keys.find(keyed_request)
    return None if found is None or found.status in NO_ANSWER else keys.replay(found, keyed_request)


def run_without_key(job: Job) -> ApiResponse:
    """Run the job in its one or two commits."""
    if isinstance(job, InsertJob):
        return _without_conflicts(job, lambda: _insert(job))
    if isinstance(job, TwoPhaseJob):
        with ExitStack() as held:
            job.admit(held)
            transaction.atomic(job.prepare)()
            return transaction.atomic(job.finish)(job.perform())
    return transaction.atomic(lambda: ApiResponse.of(job()))()


def run_once(keyed_request: KeyedRequest, job: Job) -> ApiResponse:
    """Run the job and store its key, or replay the answer of the first request.

    Raises IdempotencyKeyReused, IdempotencyKeyInProgress, and errors of the job. Then nothing is stored, or
    only the key if the error has `keeps_key`.
    """
    if isinstance(job, TwoPhaseJob):
        return _run_two_phases(keyed_request, job)
    if isinstance(job, InsertJob):
        return _insert_once(keyed_request, job)
    return _work_with_key(keyed_request, lambda: ApiResponse.of(job()))


def refuse(keyed_request: KeyedRequest, refusal: ApiError) -> ApiResponse:
    """Raise the refusal of a request that did nothing so far, or replay the answer that its key has.

    Raises IdempotencyKeyReused, IdempotencyKeyInProgress.
    """

    def work() -> ApiResponse:
        raise refusal

    return _work_with_key(keyed_request, work)


def _with_retries(work: Callable[[], T]) -> T:
    """Run the work, again after a deadlock. Raises IdempotencyKeyInProgress, ServiceUnavailable."""
    for _ in range(MAX_TRIES):
        try:
            return work()
        except OperationalError as error:
            if isinstance(error.__cause__, LockNotAvailable):
                raise IdempotencyKeyInProgress(retry_after=1) from None
            if not isinstance(error.__cause__, DeadlockDetected | SerializationFailure):
                raise
    raise ServiceUnavailable(retry_after=1)


def _without_conflicts(job: InsertJob, insert: Callable[[], ApiResponse]) -> ApiResponse:
    """Insert, again after `on_conflict` made room. Raises what it raises, and ServiceUnavailable."""
    for _ in range(MAX_TRIES):
        try:
            return insert()
        except IntegrityError as error:
            if job.on_conflict is None or not isinstance(error.__cause__, UniqueViolation):
                raise
            job.on_conflict(error)
    raise ServiceUnavailable(retry_after=1)


def _insert_once(keyed_request: KeyedRequest, job: InsertJob) -> ApiResponse:
    """Insert with the key. A refusal of `on_conflict` that keeps the key stores it, as that of other jobs."""

    def insert() -> ApiResponse:
        if rows.insert_once(keyed_request.new_row(job.answer), job.rows):
            return _answer_after_commit(job)
        # Another request has the key, or its row has expired.
        return find_answer(keyed_request) or _work_with_key(keyed_request, lambda: _insert(job))

    try:
        return _with_retries(lambda: _without_conflicts(job, insert))
    except ApiError as refusal:
        if not refusal.keeps_key:
            raise
        return refuse(keyed_request, refusal)


def _insert(job: InsertJob) -> ApiResponse:
    rows.insert_together(job.rows)
    return _answer_after_commit(job)


def _answer_after_commit(job: InsertJob) -> ApiResponse:
    if job.on_commit is not None:
        transaction.on_commit(job.on_commit, robust=True)
    return job.answer


def _work_with_key(keyed_request: KeyedRequest, work: Callable[[], ApiResponse]) -> ApiResponse:
    """Raises errors of the work, after the commit of the key if they keep it."""
    result = _with_retries(partial(_claim_and_work, keyed_request, work))
    if isinstance(result, ApiError):
        raise result
    return result


@transaction.atomic
def _claim_and_work(keyed_request: KeyedRequest, work: Callable[[], ApiResponse]) -> ApiResponse | ApiError:
    # Others see the key after the commit, and then as refused or with an answer.
    if not keys.claim(keyed_request, REFUSED):
        answer = find_answer(keyed_request)
        if answer is None:
            raise IdempotencyKeyInProgress(retry_after=1)
        return answer
    try:
        with transaction.atomic():  # the savepoint before the work
            answer = work()
    except ApiError as refusal:
        if not refusal.keeps_key:
            raise
        return refusal
    keys.store_answer(keyed_request, answer)
    return answer


def _run_two_phases(keyed_request: KeyedRequest, job: TwoPhaseJob[S]) -> ApiResponse:
    """Run both commits, or wait for the request that has the key. Tries again when the key is free."""
    started = time.monotonic()
    while True:
        with ExitStack() as held:
            if _with_retries(partial(_first_commit, keyed_request, job, held)):
                return _with_retries(partial(_second_commit, keyed_request, job, job.perform()))
        answer = _wait_for_first_request(keyed_request, job, started)
        if answer is not None:
            return answer
        # Requests that wait for this one use the age of the key to detect a crash.
        keyed_request = replace(keyed_request, now=clock.now())


@transaction.atomic
def _first_commit(keyed_request: KeyedRequest, job: TwoPhaseJob[S], held: ExitStack) -> bool:
    """Claim the key, then the slot: a duplicate needs no slot, and a refusal rolls the key back."""
    held.close()  # slots of an attempt that the database refused
    is_ours = keys.claim(keyed_request, IN_PROGRESS, job.subject_id)
    if is_ours:
        job.admit(held)
        job.prepare()
    return is_ours


@transaction.atomic
def _second_commit(keyed_request: KeyedRequest, job: TwoPhaseJob[S], result: S) -> ApiResponse:
    # Lock order: the key before the subject.
    is_ours = keys.lock(keyed_request, job.subject_id)
    answer = job.finish(result)
    if is_ours and (200 <= answer.status < 300 or answer.status == 402):
        keys.store_answer(keyed_request, answer)
    elif is_ours:
        keyed_request.rows.delete()  # so that the next request runs anew
    return answer


def _wait_for_first_request(
    keyed_request: KeyedRequest, job: TwoPhaseJob[S], started: float
) -> ApiResponse | None:
    """The answer of the first request, or None when the key is free again.

    The deadline is shorter if many requests wait. Raises IdempotencyKeyInProgress, IdempotencyKeyReused.
    """
    with ExitStack() as held:
        merchant_id, deadline = keyed_request.merchant.id, started + WAIT_SECONDS
        try:
            held.enter_context(
                _waiting_slots.hold(merchant_id, total=MAX_WAITING, share=MAX_WAITING_PER_MERCHANT)
            )
        except BulkheadFull:
            deadline = started + SHORT_WAIT_SECONDS
        while (found := keys.find(keyed_request)) is not None and found.status != REFUSED:
            if found.status != IN_PROGRESS:
                return keys.replay(found, keyed_request)
            if clock.now() - found.created_at >= timedelta(seconds=job.seconds):
                answer = job.resume(found.subject_id)
                return ApiResponse(answer.status, answer.body, answer.headers | keys.REPLAYED_HEADER)
            if time.monotonic() >= deadline:
                raise IdempotencyKeyInProgress(retry_after=1)
            time.sleep(POLL_SECONDS)
        return None


def delete_expired(*, now: datetime, batch: int = 1000) -> int:
    """Delete expired keys, `batch` a commit; returns how many."""
    total = 0
    while deleted := rows.run(DELETE_EXPIRED, {"now": now, "batch": batch}).rowcount:
        total += deleted
    return total
