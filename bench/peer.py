"""The peer: the same two operations, written by hand for FastAPI and asyncpg, on the same tables.

It has one pool, prepared statements (by asyncpg), one connection a request, and one statement that writes
everything. The codec, the ids and the script of the rate limiter are those of the project. So the comparison
shows the cost of the frameworks. It has only what the measured requests run: a repeated key is a 409.
"""

import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import orjson
from fastapi import FastAPI, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from redis.asyncio import Redis

from core import clock, ids, money, vault
from core.http.rate_limits import SCRIPT
from core.thai import thaiqr
from idempotency.usual_answer import USUAL_ANSWER
from merchants import secret_keys
from webhooks import bodies

POOL = 8
BASE_URL = os.environ.get("BASE_URL", "")
KEYS = os.environ.get("FIELD_ENCRYPTION_KEYS", "").split(",")
SHOWN = (
    "qr_code_id", "amount", "reference", "description", "amount_received", "amount_refunded", "failure_code",
    "bank_reference",
)  # fmt: skip
# No payment here is by card or paid, has exceptions, or is of a live merchant.
NEVER_HERE: dict[str, Any] = {
    "card": None, "exceptions": [], "exceptions_has_more": False, "payer": None, "livemode": False,
    "unmatched_money": None, "fee": None, "fee_vat": None, "net": None, "settlement_id": None,
}  # fmt: skip
LIMITS = [int(os.environ.get("RATE_LIMIT", "100")), int(os.environ.get("RATE_LIMIT_BURST", "200")), 1]


# As few statements as possible.
AUTHENTICATE = """
SELECT k.id, k.expires_at, k.revoked_at, m.id AS merchant_id, m.bank, m.biller_id, m.reference2, m.reference3
FROM merchants_apikey k JOIN merchants_merchant m ON m.id = k.merchant_id
WHERE k.digest = $1
"""

LOOK_UP_KEY = """
SELECT fingerprint, status, body_sealed, expires_at
FROM idempotency_idempotencykey WHERE merchant_id = $1 AND key = $2
"""

LISTENERS = """
SELECT id, status, events FROM webhooks_endpoint WHERE merchant_id = $1 AND deleted_at IS NULL
"""

# $1 merchant, $2 idempotency key, $3 fingerprint, $4 answer, $5 created, $6 key expires, $7 payment, $8 code,
# $9 amount, $10 reference, $11 metadata, $12 name, $13 expires, $14 biller, $15 reference of the code,
# $16 payload, $17 event, $18 body of the event, $19 deliveries, $20 endpoints, $21 states.
CREATE = """
WITH stored AS (
    INSERT INTO idempotency_idempotencykey
        (merchant_id, key, fingerprint, status, body_sealed, created_at, expires_at)
    VALUES ($1::text, $2::text, $3::bytea, 200, $4::bytea, $5::timestamptz, $6::timestamptz)
), paid AS (
    INSERT INTO payments_payment
        (id, merchant_id, qr_code_id, status, amount, currency, reference, metadata, client_name,
         amount_refunded, amount_refunding, created_at, updated_at, expires_at)
    VALUES ($7::text, $1, $8::text, 'pending', $9::bigint, 'THB', $10::text, $11::json, $12::text,
         0, 0, $5, $5, $13::timestamptz)
), coded AS (
    INSERT INTO qrcodes_qrcode (merchant_id, payment_id, bank, biller_id, reference1, qr_data, created_at)
    VALUES ($1, $7, 'sandbox', $14::text, $15::text, $16::text, $5)
), published AS (
    INSERT INTO webhooks_event (id, merchant_id, type, subject_id, body, actor, request_id, created_at)
    VALUES ($17::text, $1, 'payment.pending', $7, $18::bytea, 'key-of0peer0', rpad($2, 31, '-'), $5)
)
INSERT INTO webhooks_delivery (id, event_id, event_type, endpoint_id, state, manual_number, attempt_count,
    due_at, created_at)
SELECT d.id, $17, 'payment.pending', d.endpoint_id, d.state, 0, 0, $5, $5
FROM unnest($19::text[], $20::text[], $21::text[]) AS d (id, endpoint_id, state)
"""

POLL = """
SELECT id, qr_code_id, status, amount, currency, reference, description, metadata, amount_received,
    amount_refunded, failure_code, created_at, updated_at, completed_at, expires_at, authorize_uri,
    has_exceptions, bank_reference, amount_refunding,
    EXISTS (
        SELECT FROM reconciliation_reconciliationexception e WHERE e.bank = $3 AND e.biller_id = $4
            AND p.status IN ('pending', 'expired') AND e.reason = 'unmatched' AND e.amount = p.amount
            AND e.opened_at >= p.created_at - interval '10 minutes'
    ) AS may_have_unmatched_money
FROM payments_payment p WHERE merchant_id = $1 AND id = $2
"""


class QrCodeRequest(BaseModel):
    model_config = ConfigDict(strict=True)

    amount: int = Field(ge=100, le=200_000_000)
    currency: str = Field(pattern="^THB$")
    client_name: str | None = Field(None, max_length=140)
    reference: str | None = Field(None, max_length=35)
    expiry_minutes: int = Field(15, ge=1, le=1440)
    metadata: dict[str, Any] | None = None


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.pool = await asyncpg.create_pool(
        os.environ["DATABASE_URL"], min_size=POOL, max_size=POOL, reset=_keep
    )
    app.state.redis = Redis.from_url(os.environ["REDIS_URL"])
    app.state.limiter = app.state.redis.register_script(SCRIPT)
    yield
    await app.state.pool.close()
    await app.state.redis.aclose()


async def _keep(connection: Any) -> None:
    """No reset between requests, which would be a round trip: nothing changes the session."""


app = FastAPI(lifespan=lifespan, openapi_url=None)


@app.post("/Thai/v1/qr-codes")
async def create(request: Request, requested: QrCodeRequest) -> Response:
    now = clock.now()
    async with app.state.pool.acquire() as connection:
        merchant = await _authenticate(connection, request, now)
        key, body = request.headers["idempotency-key"], requested.model_dump(exclude_unset=True)
        fingerprint = hashlib.sha256(orjson.dumps(["create", body], option=orjson.OPT_SORT_KEYS)).digest()
        stored = await connection.fetchrow(LOOK_UP_KEY, merchant["merchant_id"], key)
        if stored is not None and stored["expires_at"] > now:
            raise HTTPException(409)
        listeners = await connection.fetch(LISTENERS, merchant["merchant_id"])
        response, values = _drawn(requested, merchant, now, listeners)
        # Stored answers may contain account numbers, so they are sealed as by the service.
        context = f"{merchant['merchant_id']} {key}"
        sealed = vault.seal_bytes(response, context=context, keys=KEYS, usual=USUAL_ANSWER)
        await connection.execute(
            CREATE,
            *(merchant["merchant_id"], key, fingerprint, sealed, now, now + timedelta(hours=24)),
            *values,
        )
    return Response(response, media_type="application/json")


@app.get("/Thai/v1/payments/{payment_id}")
async def poll(request: Request, payment_id: str) -> Response:
    now = clock.now()
    async with app.state.pool.acquire() as connection:
        merchant = await _authenticate(connection, request, now)
        billed = merchant["bank"], merchant["biller_id"]
        payment = await connection.fetchrow(POLL, merchant["merchant_id"], payment_id, *billed)
    if payment is None:
        raise HTTPException(404)
    return Response(orjson.dumps(_payment_object(payment, now)), media_type="application/json")


async def _authenticate(connection: Any, request: Request, now: datetime) -> Any:
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret_keys.is_well_formed(secret):
        raise HTTPException(401)
    found = await connection.fetchrow(AUTHENTICATE, secret_keys.digest(secret))
    if found is None or found["revoked_at"] or (found["expires_at"] and found["expires_at"] <= now):
        raise HTTPException(401)
    allowed, *_ = await app.state.limiter(keys=[f"rate:{found['id']}"], args=LIMITS)
    if not allowed:
        raise HTTPException(429)
    return found


def _drawn(
    requested: QrCodeRequest, merchant: Any, now: datetime, listeners: Any
) -> tuple[bytes, tuple[Any, ...]]:
    """The answer, and the parameters 7 to 21 of the statement that stores it."""
    payment_id, event_id = ids.new("pay_", now), ids.new("evt_", now)
    code_id = ids.of_code(payment_id)
    reference1 = ids.random_text(20, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    payload = thaiqr.bill_payment(
        biller_id=merchant["biller_id"],
        reference1=reference1,
        reference2=merchant["reference2"],
        reference3=merchant["reference3"],
        amount=requested.amount,
    )
    expires_at = now + timedelta(minutes=requested.expiry_minutes)
    event = {
        "event": "payment.pending",
        "event_id": event_id,
        "data": {
            **_shared(code_id, payment_id, requested),
            "reference": requested.reference,
            "metadata": requested.metadata,
            "failure_code": None,
        },
        "timestamp": clock.iso(now),
    }
    result = [row for row in listeners if "payment.pending" in row["events"]]
    metadata = None if requested.metadata is None else orjson.dumps(requested.metadata).decode()
    values = (
        *(payment_id, code_id, requested.amount, requested.reference, metadata, requested.client_name),
        *(expires_at, merchant["biller_id"], reference1, payload, event_id),
        bodies.pack(orjson.dumps(event), event_id + payment_id),
        [ids.new("dlv_", now) for _ in result],
        [row["id"] for row in result],
        ["pending" if row["status"] == "active" else "held" for row in result],
    )
    return _code_object(code_id, payment_id, payload, requested, expires_at), values


def _shared(code_id: str, payment_id: str, requested: QrCodeRequest) -> dict[str, Any]:
    return {
        "payment_id": payment_id,
        "status": "pending",
        "amount": requested.amount,
        "amount_display": money.with_code(requested.amount),
        "currency": "THB",
        "qr_code_id": code_id,
    }


def _code_object(
    code_id: str, payment_id: str, payload: str, requested: QrCodeRequest, expires_at: datetime
) -> bytes:
    return orjson.dumps(
        {
            **_shared(code_id, payment_id, requested),
            "qr_data": payload,
            "qr_image_url": f"{BASE_URL}/Thai/qr-codes/{code_id}/image",
            "payment_page_url": f"{BASE_URL}/pay/{code_id}",
            "expires_at": clock.iso(expires_at),
            **requested.model_dump(include={"reference", "client_name", "metadata"}, exclude_none=True),
        }
    )


def _payment_object(payment: Any, now: datetime) -> dict[str, Any]:
    expires_at = payment["expires_at"]
    is_over = payment["status"] == "pending" and expires_at is not None and expires_at <= now
    return {
        "payment_id": payment["id"],
        **{name: payment[name] for name in SHOWN},
        "status": "expired" if is_over else payment["status"],
        "amount_display": money.with_code(payment["amount"]),
        "currency": "THB",
        "created_at": clock.iso(payment["created_at"]),
        "updated_at": clock.iso(expires_at if is_over else payment["updated_at"]),
        "completed_at": clock.iso_or_none(payment["completed_at"]),
        "metadata": None if payment["metadata"] is None else orjson.loads(payment["metadata"]),
        "expires_at": clock.iso_or_none(expires_at),
        "authorize_uri": payment["authorize_uri"] if payment["status"] == "pending" else None,
        "refunds": {
            "completed": payment["amount_refunded"],
            "pending": payment["amount_refunding"],
            "remaining": 0,
        },
        **NEVER_HERE,
    }
