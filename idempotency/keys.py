"""The rows of idempotency keys: take one, find it, keep the answer with it, let go of it."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection

from core import rows, vault
from core.http import Answer
from idempotency.errors import IdempotencyKeyReused
from idempotency.fingerprints import Fingerprint
from idempotency.models import UNDER_WAY, IdempotencyKey
from merchants.models import Merchant

REPLAYED = {"Idempotent-Replayed": "true"}


@dataclass(frozen=True, slots=True)
class Claim:
    """A key as one request brings it."""

    merchant: Merchant
    key: str
    fingerprint: Fingerprint
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
            fingerprint=self.fingerprint.newest,
            status=answer.status,
            body_sealed=self.seal(answer.body),
            created_at=self.now,
            expires_at=self.expires_at,
        )


def find(claim: Claim) -> IdempotencyKey | None:
    """The row of this key, None without one that still counts. Raises IdempotencyKeyReused."""
    found = rows.fetch(IdempotencyKey, merchant_id=claim.merchant.id, key=claim.key)
    if found is None or found.expires_at <= claim.now:
        return None
    if not claim.fingerprint.is_stored_as(bytes(found.fingerprint)):
        raise IdempotencyKeyReused()
    return found


def replay(found: IdempotencyKey, claim: Claim) -> Answer:
    """The stored answer."""
    return Answer(found.status, claim.unseal(found.body_sealed), dict(REPLAYED))


def take(claim: Claim, subject_id: str = "") -> bool:
    """Insert the key, or take over an expired one; False when it is another request's.

    Waits while another transaction holds it.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO idempotency_idempotencykey AS k
                (merchant_id, key, fingerprint, status, body_sealed, subject_id, created_at, expires_at)
            VALUES (%(merchant)s, %(key)s, %(print)s, %(state)s, ''::bytea, %(subject)s, %(now)s, %(expires)s)
            ON CONFLICT (merchant_id, key) DO UPDATE
                SET fingerprint = EXCLUDED.fingerprint, status = EXCLUDED.status,
                    subject_id = EXCLUDED.subject_id, created_at = EXCLUDED.created_at,
                    expires_at = EXCLUDED.expires_at
                WHERE k.expires_at <= EXCLUDED.created_at
            RETURNING k.id
            """,
            {
                "merchant": claim.merchant.id,
                "key": claim.key,
                "print": claim.fingerprint.newest,
                "state": UNDER_WAY,
                "subject": subject_id,
                "now": claim.now,
                "expires": claim.expires_at,
            },
        )
        return cursor.fetchone() is not None


def hold(claim: Claim, subject_id: str) -> bool:
    """Lock the row; False if it expired meanwhile and is another request's now."""
    held = IdempotencyKey.objects.select_for_update(no_key=True).filter(subject_id=subject_id)
    return held.filter(merchant=claim.merchant, key=claim.key).first() is not None


def keep(claim: Claim, answer: Answer) -> None:
    """Store the answer with a key that this transaction took or holds."""
    IdempotencyKey.objects.filter(merchant=claim.merchant, key=claim.key).update(
        status=answer.status, body_sealed=claim.seal(answer.body)
    )


def free(claim: Claim) -> None:
    """Let go of a key that this transaction holds: the next request runs afresh."""
    IdempotencyKey.objects.filter(merchant=claim.merchant, key=claim.key).delete()
