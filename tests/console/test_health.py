"""Health and readiness."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from console import heartbeats
from console.models import Heartbeat
from core import clock
from tests.conftest import Shop
from tests.webhooks.cast import make_endpoint, publish, set_health
from webhooks.models import Endpoint


@pytest.fixture
def signs_of_life(db: None) -> None:
    for name in (heartbeats.BEAT, *settings.QUEUES):
        heartbeats.sign(name, now=clock.now())


def test_healthz_asks_nobody() -> None:
    assert Client().get("/healthz").json() == {"status": "ok"}


def test_ready_when_everything_is_alive(signs_of_life: None) -> None:
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    assert set(answer.json()["checks"]) == {
        "database", "database_sessions", "migrations", "encryption_keys", "beat", "worker_default",
        "worker_webhooks", "worker_cards", "worker_transfers", "worker_inquiries", "deliveries",
        "clock",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["beat", *settings.QUEUES])
def test_a_part_that_fell_silent_is_named(signs_of_life: None, name: str) -> None:
    Heartbeat.objects.filter(name=name).update(at=clock.now() - timedelta(minutes=1))
    answer = Client().get("/readyz")
    part = name if name == "beat" else f"worker_{name}"
    failed = {check for check, result in answer.json()["checks"].items() if not result["ok"]}
    assert (answer.status_code, failed) == (503, {part})


@pytest.mark.parametrize("ahead", [timedelta(seconds=-30), timedelta(seconds=30)])
def test_clocks_that_differ_are_a_warning_and_ready_stays_200(
    signs_of_life: None, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    assert Client().get("/readyz").json()["warnings"] == []
    ours = clock.now
    monkeypatch.setattr(clock, "now", lambda: ours() - ahead)
    for name in (heartbeats.BEAT, *settings.QUEUES):
        heartbeats.sign(name, now=clock.now())
    answer = Client().get("/readyz")
    told = answer.json()
    assert (answer.status_code, told["status"], told["warnings"]) == (200, "ok", ["clock"])
    assert told["checks"]["clock"]["ok"]
    assert told["checks"]["clock"]["difference_seconds"] == pytest.approx(ahead.total_seconds(), abs=2)
    assert "clock_difference_seconds " in Client().get("/metrics").content.decode()


def test_a_missing_migration_is_named(signs_of_life: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE app = 'receipts' AND name = "
            "(SELECT max(name) FROM django_migrations WHERE app = 'receipts')"
        )
    checks = Client().get("/readyz").json()["checks"]
    assert checks["migrations"] == {"ok": False, "pending": 1}


def late(shop: Shop) -> Endpoint:
    """An endpoint whose delivery has been due for ten minutes."""
    endpoint = make_endpoint(shop)
    publish(shop, at=clock.now() - timedelta(minutes=10))
    return endpoint


def test_deliveries_that_no_worker_takes_are_named(signs_of_life: None, shop: Shop) -> None:
    late(shop)
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["checks"]["deliveries"]["ok"]) == (503, False)


def test_what_waits_for_an_ill_endpoint_is_no_fault_of_the_service(signs_of_life: None, shop: Shop) -> None:
    now = clock.now()
    set_health(late(shop), paused_at=now, paused_until=now, pause_seconds=30)
    assert Client().get("/readyz").json()["checks"]["deliveries"] == {"ok": True, "oldest_due_seconds": 0}


def test_sessions_without_time_limits_are_named(signs_of_life: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0")
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    problem = "Sessions of the database have no lock_timeout, statement_timeout."
    assert answer.json()["checks"]["database_sessions"] == {"ok": False, "problem": problem}
