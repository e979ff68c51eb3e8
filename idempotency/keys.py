"""Rows of idempotency keys: claim, find, store the answer, release."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet

from core import vault
from core.database import rows
from core.http.responses import ApiResponse
from idempotency.fingerprint import Fingerprint
from idempotency.models import REFUSED, IdempotencyKey
from idempotency.usual_answer import USUAL_ANSWER
from merchants.models import Merchant

REPLAYED_HEADER = {"Idempotent-Replayed": "true"}


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """An idempotency key with the request that uses it."""

    merchant: Merchant
    key: str
    fingerprint: Fingerprint
    now: datetime

    @property
    def expires_at(self) -> datetime:
        return self.now + timedelta(hours=settings.IDEMPOTENCY_TTL_HOURS)

    @property
    def rows(self) -> "QuerySet[IdempotencyKey]":
        """The row of this key, if there is one."""
        return IdempotencyKey.objects.filter(merchant=self.merchant, key=self.key)

    @property
    def _context(self) -> str:
        return f"{self.merchant.id} {self.key}"

    def seal(self, body: bytes) -> bytes:
        """Encrypt a response, because it may contain the customer's account."""
        return vault.seal_bytes(body, context=self._context, usual=USUAL_ANSWER)

    def unseal(self, body: bytes | memoryview) -> bytes:
        return vault.open_bytes(bytes(body), context=self._context, usual=USUAL_ANSWER)

    def new_row(self, answer: ApiResponse) -> IdempotencyKey:
        return rows.new(
            IdempotencyKey,
            merchant=self.merchant,
            key=self.key,
            fingerprint=self.fingerprint.digests[0],
            status=answer.status,
            body_sealed=self.seal(answer.body),
            created_at=self.now,
            expires_at=self.expires_at,
        )


def find(keyed_request: KeyedRequest) -> IdempotencyKey | None:
    """The row of this key, or None if there is none or it has expired. Raises IdempotencyKeyReused."""
    found = keyed_request.rows.first()
    if found is None or found.expires_at <= keyed_request.now:
        return None
    keyed_request.fingerprint.check(bytes(found.fingerprint))
    return found


def replay(found: IdempotencyKey, keyed_request: KeyedRequest) -> ApiResponse:
    """The stored response."""
    return ApiResponse(found.status, keyed_request.unseal(found.body_sealed), dict(REPLAYED_HEADER))


def claim(keyed_request: KeyedRequest, status: int, subject_id: str = "") -> bool:
    """Insert the key, or take over one that expired or whose same request was refused.

    False if it belongs to another request. Waits while another transaction holds it.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO idempotency_idempotencykey AS k
                (merchant_id, key, fingerprint, status, body_sealed, subject_id, created_at, expires_at)
            VALUES
                (%(merchant)s, %(key)s, %(print)s, %(status)s, ''::bytea, %(subject)s, %(now)s, %(expires)s)
            ON CONFLICT (merchant_id, key) DO UPDATE
                SET fingerprint = EXCLUDED.fingerprint, status = EXCLUDED.status,
                    body_sealed = EXCLUDED.body_sealed, subject_id = EXCLUDED.subject_id,
                    created_at = EXCLUDED.created_at, expires_at = EXCLUDED.expires_at
                WHERE k.expires_at <= EXCLUDED.created_at
                    OR k.status = %(refused)s AND k.fingerprint = ANY(%(prints)s)
            RETURNING true
            """,
            {
                "merchant": keyed_request.merchant.id,
                "key": keyed_request.key,
                "print": keyed_request.fingerprint.digests[0],
                "status": status,
                "subject": subject_id,
                "now": keyed_request.now,
                "expires": keyed_request.expires_at,
                "refused": REFUSED,
                "prints": keyed_request.fingerprint.digests,
            },
        )
        return cursor.fetchone() is not None


def lock(keyed_request: KeyedRequest, subject_id: str) -> bool:
    """Lock the row. False if it expired and belongs to another request now."""
    return keyed_request.rows.select_for_update(no_key=True).filter(subject_id=subject_id).first() is not None


def store_answer(keyed_request: KeyedRequest, answer: ApiResponse) -> None:
    """Store the response with a key that this transaction holds."""
    keyed_request.rows.update(status=answer.status, body_sealed=keyed_request.seal(answer.body))
