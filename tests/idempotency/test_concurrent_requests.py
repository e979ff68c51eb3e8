"""The same key by many at once: one does the work, the others get its answer."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from django.db import connection

from core import clock
from idempotency import services
from idempotency.models import IdempotencyKey
from payments.models import Payment
from tests.concurrency import lock_waiters, run_concurrently
from tests.conftest import Shop, new_client, open_shop
from tests.error_messages import check_error
from tests.factories import qr_request
from tests.stack import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PATH = "/Thai/v1/qr-codes"


def posting(shop: Shop, body: dict[str, Any], key: str) -> Callable[[], Any]:
    own = Shop(shop.merchant, shop.secret_key, new_client())
    return partial(own.post, PATH, body, key=key)


def test_twenty_concurrent_identical_requests_create_one_payment() -> None:
    shop = open_shop("Race")
    for number in range(5):
        answers = run_concurrently(*[posting(shop, qr_request(), f"round-{number}") for _ in range(20)])
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.content for answer in answers}) == 1
        assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == 1
    assert Payment.objects.count() == 5


def test_two_bodies_under_one_idempotency_key_create_one_payment() -> None:
    shop = open_shop("Race")
    bodies = [qr_request(), qr_request(amount=200_000)] * 10
    answers = run_concurrently(*[posting(shop, body, "k") for body in bodies])
    assert Counter(answer.status_code for answer in answers) == {200: 10, 409: 10}
    assert Payment.objects.count() == 1


def test_expired_idempotency_key_is_claimed_once() -> None:
    shop = open_shop("Race")
    shop.post(PATH, qr_request(), key="k")
    past = clock.now() - timedelta(hours=25)
    IdempotencyKey.objects.update(created_at=past, expires_at=past + timedelta(hours=24))
    answers = run_concurrently(*[posting(shop, qr_request(amount=200_000), "k") for _ in range(20)])
    assert len({answer.content for answer in answers}) == 1
    assert Payment.objects.count() == 2


def test_duplicate_request_gets_409_after_lock_timeout() -> None:
    shop = open_shop("Race")
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute(
            "INSERT INTO idempotency_idempotencykey"
            " (merchant_id, key, fingerprint, status, body_sealed, created_at, expires_at)"
            " VALUES (%s, 'k', '', 0, '', now(), now() + interval '1 day')",
            [shop.merchant.id],
        )
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '200ms'")
        refused = shop.post(PATH, qr_request(), key="k")
        other.rollback()
    connection.close()
    assert refused.status_code == 409
    check_error(refused.json(), "idempotency_key_in_progress")
    assert refused.headers["Retry-After"] == "1"
    assert not Payment.objects.exists()


def test_deletion_keeps_idempotency_key_claimed_during_deletion() -> None:
    """The sweep waits for the lock of the row, and then finds that the key is in use again."""
    shop = open_shop("Race")
    shop.post(PATH, qr_request(), key="k")
    past = clock.now() - timedelta(hours=25)
    IdempotencyKey.objects.update(created_at=past, expires_at=past + timedelta(hours=24))
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("UPDATE idempotency_idempotencykey SET expires_at = now() + interval '1 day'")
        with ThreadPoolExecutor(1) as pool:
            forgotten = pool.submit(forgetting)
            wait_until(lambda: lock_waiters() == 1, 60)
            other.commit()
            assert forgotten.result() == 0
    assert IdempotencyKey.objects.count() == 1


def forgetting() -> int:
    try:
        return services.delete_expired(now=clock.now())
    finally:
        connection.close()
