"""Run a request once per key: the key, the work and the stored answer commit together or not at all.

The database is the lock. A duplicate waits on the unique index until the first one commits (bounded by
`lock_timeout`), then finds the stored answer. No lock with a time to live, no second store.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.conf import settings
from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction
from django.db.models import Model

from core import rows, vault
from core.errors import ServiceUnavailable
from core.http import Answer
from idempotency.errors import IdempotencyKeyInProgress, IdempotencyKeyReused
from idempotency.models import IdempotencyKey
from merchants.models import Merchant

DEADLOCK, SERIALIZATION, LOCK_TIMEOUT = "40P01", "40001", "55P03"
TRIES = 3
REPLAYED = {"Idempotent-Replayed": "true"}


@dataclass(frozen=True, slots=True)
class Draft:
    """A job whose rows are all known beforehand: they go in by one statement, then `then` is called."""

    answer: Answer
    rows: Sequence[Model]
    then: Callable[[], None] | None = None


# What a request is to do once: a draft, or work that runs in the one transaction and gives the answer.
Job = Draft | Callable[[], Answer]


@dataclass(frozen=True, slots=True)
class Claim:
    """A key as one request brings it."""

    merchant: Merchant
    key: str
    fingerprint: bytes
    now: datetime
    expires_at: datetime = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "expires_at", self.now + timedelta(hours=settings.IDEMPOTENCY_TTL_HOURS))

    @property
    def _place(self) -> str:
        return f"{self.merchant.id} {self.key}"

    def seal(self, body: bytes) -> bytes:
        """An answer may name the customer's account: what is kept of it cannot be read from a dump."""
        return vault.seal(body.decode(), context=self._place).encode()

    def unseal(self, body: bytes | memoryview) -> bytes:
        return vault.open_sealed(bytes(body).decode(), context=self._place).encode()

    def row(self, answer: Answer) -> IdempotencyKey:
        return rows.new(
            IdempotencyKey,
            merchant=self.merchant,
            key=self.key,
            fingerprint=self.fingerprint,
            status=answer.status,
            body_sealed=self.seal(answer.body),
            created_at=self.now,
            expires_at=self.expires_at,
        )


def fingerprint(*, method: str, operation: str, body: Any) -> bytes:
    """What makes two requests the same: method, operation (all path forms are one) and body by value."""
    canonical = orjson.dumps([method, operation, body], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(canonical).digest()


def look_up(claim: Claim) -> Answer | None:
    """The stored answer of this key, None if there is none. Raises IdempotencyKeyReused."""
    found = rows.fetch(IdempotencyKey, merchant_id=claim.merchant.id, key=claim.key)
    return None if found is None or found.expires_at <= claim.now else _replay(found, claim)


def run_without_key(job: Job) -> Answer:
    """The job by itself, in one commit."""
    if isinstance(job, Draft):
        _insert(job.rows, job)
        return job.answer
    with transaction.atomic():
        return job()


def run_once(claim: Claim, job: Job) -> Answer:
    """The job and its key in one commit, or the answer of whoever was first.

    Raises IdempotencyKeyReused, IdempotencyKeyInProgress, and what the job raises (then nothing is stored).
    """
    for _ in range(TRIES):
        try:
            return _insert_once(claim, job) if isinstance(job, Draft) else _work_once(claim, job)
        except OperationalError as error:
            if _state(error) == LOCK_TIMEOUT:
                raise IdempotencyKeyInProgress(retry_after=1) from None
            if _state(error) not in (DEADLOCK, SERIALIZATION):
                raise
    raise ServiceUnavailable(retry_after=1)


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


def _work_once(claim: Claim, work: Callable[[], Answer]) -> Answer:
    with transaction.atomic():
        if not _take(claim):
            found = IdempotencyKey.objects.get(merchant=claim.merchant, key=claim.key)
            return _replay(found, claim)
        answer = work()
        IdempotencyKey.objects.filter(merchant=claim.merchant, key=claim.key).update(
            status=answer.status, body_sealed=claim.seal(answer.body)
        )
    return answer


def _take(claim: Claim) -> bool:
    """Insert the key, or take over an expired one; False when it belongs to a finished request.

    Waits while another transaction holds it.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO idempotency_idempotencykey AS k
                (merchant_id, key, fingerprint, status, body_sealed, created_at, expires_at)
            VALUES (%(merchant)s, %(key)s, %(print)s, 0, ''::bytea, %(now)s, %(expires)s)
            ON CONFLICT (merchant_id, key) DO UPDATE
                SET fingerprint = EXCLUDED.fingerprint, created_at = EXCLUDED.created_at,
                    expires_at = EXCLUDED.expires_at
                WHERE k.expires_at <= EXCLUDED.created_at
            RETURNING k.id
            """,
            {
                "merchant": claim.merchant.id,
                "key": claim.key,
                "print": claim.fingerprint,
                "now": claim.now,
                "expires": claim.expires_at,
            },
        )
        return cursor.fetchone() is not None


def _replay(found: IdempotencyKey, claim: Claim) -> Answer:
    if bytes(found.fingerprint) != claim.fingerprint:
        raise IdempotencyKeyReused()
    return Answer(found.status, claim.unseal(found.body_sealed), dict(REPLAYED))


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
