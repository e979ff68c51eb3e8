"""The peer: the same two operations, written by hand for FastAPI and asyncpg, on the same tables.

It has one pool, prepared statements (by asyncpg), one connection a request, and one statement that writes
everything. The codec, the ids and the script of the rate limiter are those of the project. So the comparison
shows the cost of the frameworks.
"""

import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from redis.asyncio import Redis

from bench import peer_sql
from core import clock, ids, money, thaiqr, vault
from core.rate_limits import SCRIPT
from merchants import secret_keys

POOL = 8
BASE_URL = os.environ.get("BASE_URL", "")
KEYS = os.environ.get("FIELD_ENCRYPTION_KEYS", "").split(",")
LIMITS = [int(os.environ.get("RATE_LIMIT", "100")), int(os.environ.get("RATE_LIMIT_BURST", "200")), 1]


class QrCodeRequest(BaseModel):
    model_config = ConfigDict(strict=True)

    amount: int = Field(ge=100, le=200_000_000)
    currency: str = Field(pattern="^THB$")
    client_name: str | None = Field(None, max_length=140)
    client_bank_name: str | None = Field(None, max_length=140)
    client_bank_account: str | None = Field(None, max_length=140)
    reference: str | None = Field(None, max_length=35)
    expiry_minutes: int = Field(15, ge=1, le=1440)
    metadata: dict[str, Any] | None = None


class Refusal(Exception):
    def __init__(self, status: int, code: str) -> None:
        self.status, self.code = status, code


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


@app.exception_handler(Refusal)
async def refused(request: Request, refusal: Refusal) -> Response:
    return _json({"error": {"code": refusal.code}}, refusal.status)


@app.exception_handler(RequestValidationError)
async def invalid(request: Request, error: RequestValidationError) -> Response:
    return _json({"error": {"code": "invalid_request"}}, 400)


@app.post("/Thai/v1/qr-codes")
async def create(request: Request, requested: QrCodeRequest) -> Response:
    now = clock.now()
    async with app.state.pool.acquire() as connection:
        merchant = await _authenticate(connection, request, now)
        await _limit(merchant["id"])
        key, fingerprint = request.headers["idempotency-key"], _fingerprint(requested)
        stored = await connection.fetchrow(peer_sql.LOOK_UP_KEY, merchant["merchant_id"], key)
        if stored is not None and stored["expires_at"] > now:
            return _replay(stored, fingerprint, merchant["merchant_id"], key)
        listeners = await connection.fetch(peer_sql.LISTENERS, merchant["merchant_id"])
        response, values = _drawn(requested, merchant, now, listeners)
        sealed = _seal(response, merchant["merchant_id"], key)
        try:
            await connection.execute(
                peer_sql.CREATE,
                *(merchant["merchant_id"], key, fingerprint, sealed, now, now + timedelta(hours=24)),
                *values,
            )
        except asyncpg.UniqueViolationError:
            stored = await connection.fetchrow(peer_sql.LOOK_UP_KEY, merchant["merchant_id"], key)
            return _replay(stored, fingerprint, merchant["merchant_id"], key)
    return Response(response, media_type="application/json")


@app.get("/Thai/v1/payments/{payment_id}")
async def poll(request: Request, payment_id: str) -> Response:
    now = clock.now()
    async with app.state.pool.acquire() as connection:
        merchant = await _authenticate(connection, request, now)
        await _limit(merchant["id"])
        payment = await connection.fetchrow(peer_sql.POLL, merchant["merchant_id"], payment_id)
    if payment is None:
        raise Refusal(404, "payment_not_found")
    return _json(_payment_object(payment, now))


async def _authenticate(connection: Any, request: Request, now: datetime) -> Any:
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not secret_keys.is_well_formed(secret):
        raise Refusal(401, "authentication_failed")
    found = await connection.fetchrow(peer_sql.AUTHENTICATE, secret_keys.digest(secret))
    if found is None or found["revoked_at"] or (found["expires_at"] and found["expires_at"] <= now):
        raise Refusal(401, "authentication_failed")
    return found


async def _limit(key_id: str) -> None:
    allowed, *_ = await app.state.limiter(keys=[f"rate:{key_id}"], args=LIMITS)
    if not allowed:
        raise Refusal(429, "rate_limit_exceeded")


def _fingerprint(requested: QrCodeRequest) -> bytes:
    body = requested.model_dump(exclude_unset=True)
    return hashlib.sha256(orjson.dumps(["create", body], option=orjson.OPT_SORT_KEYS)).digest()


def _seal(response: bytes, merchant_id: str, key: str) -> bytes:
    """Stored answers may contain account numbers, so they are sealed as by the service."""
    return vault.seal(response.decode(), context=f"{merchant_id} {key}", keys=KEYS).encode()


def _replay(stored: Any, fingerprint: bytes, merchant_id: str, key: str) -> Response:
    if stored["fingerprint"] != fingerprint:
        raise Refusal(409, "idempotency_key_reused")
    body = vault.open_sealed(stored["body_sealed"].decode(), context=f"{merchant_id} {key}", keys=KEYS)
    return Response(body, stored["status"], {"Idempotent-Replayed": "true"}, "application/json")


def _drawn(
    requested: QrCodeRequest, merchant: Any, now: datetime, listeners: Any
) -> tuple[bytes, tuple[Any, ...]]:
    """The answer, and the parameters 7 to 23 of the statement that stores it."""
    payment_id, code_id, event_id = ids.new("pay_", now), ids.new("qr_", now), ids.new("evt_", now)
    reference1 = ids.random_text(20, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    payload = thaiqr.bill_payment(
        biller_id=merchant["biller_id"],
        reference1=reference1,
        reference2=merchant["reference2"] or None,
        reference3=merchant["reference3"] or None,
        amount=requested.amount,
    )
    expires_at = now + timedelta(minutes=requested.expiry_minutes)
    account = requested.client_bank_account
    sealed = None if account is None else vault.seal(account, context=payment_id, keys=KEYS)
    result = [row for row in listeners if "payment.pending" in row["events"]]
    values = (
        *(
            payment_id,
            code_id,
            requested.amount,
            requested.reference,
            _metadata(requested),
            requested.client_name,
        ),
        *(requested.client_bank_name, sealed, expires_at, merchant["biller_id"], reference1, payload),
        *(event_id, _event(event_id, payment_id, code_id, requested, now)),
        [ids.new("dlv_", now) for _ in result],
        [row["id"] for row in result],
        ["pending" if row["status"] == "active" else "held" for row in result],
    )
    return _code_object(code_id, payment_id, payload, requested, expires_at), values


def _metadata(requested: QrCodeRequest) -> str | None:
    return None if requested.metadata is None else orjson.dumps(requested.metadata).decode()


def _event(event_id: str, payment_id: str, code_id: str, requested: QrCodeRequest, now: datetime) -> bytes:
    data = {
        "payment_id": payment_id,
        "status": "pending",
        "amount": requested.amount,
        "amount_display": money.display(requested.amount),
        "currency": "THB",
        "qr_code_id": code_id,
        "reference": requested.reference,
        "metadata": requested.metadata,
        "failure_code": None,
    }
    at = clock.iso(now)
    return orjson.dumps({"event": "payment.pending", "event_id": event_id, "data": data, "timestamp": at})


def _code_object(
    code_id: str, payment_id: str, payload: str, requested: QrCodeRequest, expires_at: datetime
) -> bytes:
    optional = requested.model_dump(
        include={"reference", "client_name", "client_bank_name", "client_bank_account", "metadata"},
        exclude_none=True,
    )
    return orjson.dumps(
        {
            "qr_code_id": code_id,
            "qr_data": payload,
            "qr_image_url": f"{BASE_URL}/Thai/qr-codes/{code_id}/image",
            "payment_page_url": f"{BASE_URL}/pay/{code_id}",
            "amount": requested.amount,
            "amount_display": money.display(requested.amount),
            "currency": "THB",
            "expires_at": clock.iso(expires_at),
            "payment_id": payment_id,
            "status": "pending",
            **optional,
        }
    )


def _payment_object(payment: Any, now: datetime) -> dict[str, Any]:
    expires_at = payment["expires_at"]
    is_over = payment["status"] == "pending" and expires_at is not None and expires_at <= now
    return {
        "payment_id": payment["id"],
        "qr_code_id": payment["qr_code_id"],
        "status": "expired" if is_over else payment["status"],
        "amount": payment["amount"],
        "amount_display": money.display(payment["amount"]),
        "currency": payment["currency"],
        "reference": payment["reference"],
        "description": payment["description"],
        "created_at": clock.iso(payment["created_at"]),
        "updated_at": clock.iso(expires_at if is_over else payment["updated_at"]),
        "completed_at": clock.iso_or_none(payment["completed_at"]),
        "card": None,  # no payment here is by card
        "metadata": None if payment["metadata"] is None else orjson.loads(payment["metadata"]),
        "amount_received": payment["amount_received"],
        "amount_refunded": payment["amount_refunded"],
        "failure_code": payment["failure_code"],
        "expires_at": clock.iso_or_none(expires_at),
        "authorize_uri": payment["authorize_uri"] if payment["status"] == "pending" else None,
        "exceptions": [],  # no payment here has any
        "exceptions_has_more": False,
        "payer": None,  # no payment here is paid
        "bank_transaction_id": payment["bank_transaction_id"],
        "refunds": {
            "completed": payment["amount_refunded"],
            "pending": payment["amount_refunding"],
            "remaining": 0,
        },
        "livemode": False,
        "unmatched_money": None,  # no money here has an unknown reference
    }


def _json(data: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(data), status, media_type="application/json")
