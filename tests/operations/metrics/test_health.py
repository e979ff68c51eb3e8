"""Health and readiness."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from core import clock
from operations.models import Heartbeat
from operations.nightly import heartbeats
from tests.conftest import Shop
from tests.webhooks.builders import make_endpoint, publish, set_health
from webhooks.models import Endpoint


@pytest.fixture
def heartbeats_recorded(db: None) -> None:
    for name in (heartbeats.BEAT, *settings.QUEUES):
        heartbeats.record(name, now=clock.now())


def test_healthz_needs_no_database() -> None:
    assert Client().get("/healthz").json() == {"status": "ok"}


def test_readyz_is_200_when_all_checks_pass(heartbeats_recorded: None) -> None:
    response = Client().get("/readyz")
    assert (response.status_code, response.json()["status"]) == (200, "ok")
    assert set(response.json()["checks"]) == {
        "database", "database_sessions", "migrations", "encryption_keys", "beat", "worker_default",
        "worker_webhooks", "worker_cards", "worker_transfers", "worker_inquiries", "deliveries",
        "clock", "safe_mode",
    }  # fmt: skip


@pytest.mark.parametrize("path", ["/readyz", "/metrics"])
def test_answer_is_computed_once_a_second(db: None, path: str) -> None:
    of_process = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": path}
    with override_settings(CACHES={**settings.CACHES, "process": of_process}):
        first = Client().get(path)
        with CaptureQueriesContext(connection) as captured:
            assert Client().get(path).content == first.content
    assert len(captured) == 0


@pytest.mark.parametrize("name", ["beat", *settings.QUEUES])
def test_readyz_names_silent_worker(heartbeats_recorded: None, name: str) -> None:
    Heartbeat.objects.filter(name=name).update(recorded_at=clock.now() - timedelta(minutes=1))
    response = Client().get("/readyz")
    part = name if name == "beat" else f"worker_{name}"
    failed = {check for check, result in response.json()["checks"].items() if not result["ok"]}
    assert (response.status_code, failed) == (503, {part})


@pytest.mark.parametrize("ahead", [timedelta(seconds=-30), timedelta(seconds=30)])
@pytest.mark.slow
def test_readyz_warns_of_clock_difference(
    heartbeats_recorded: None, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    assert Client().get("/readyz").json()["warnings"] == []
    ours = clock.now
    monkeypatch.setattr(clock, "now", lambda: ours() - ahead)
    for name in (heartbeats.BEAT, *settings.QUEUES):
        heartbeats.record(name, now=clock.now())
    response = Client().get("/readyz")
    shown = response.json()
    assert (response.status_code, shown["status"], shown["warnings"]) == (200, "ok", ["clock"])
    assert shown["checks"]["clock"]["ok"]
    assert shown["checks"]["clock"]["difference_seconds"] == pytest.approx(ahead.total_seconds(), abs=2)
    assert "thaiqr_clock_difference_seconds " in Client().get("/metrics").content.decode()


def test_readyz_names_missing_migration(heartbeats_recorded: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_migrations WHERE app = 'reconciliation' AND name = "
            "(SELECT max(name) FROM django_migrations WHERE app = 'reconciliation')"
        )
    checks = Client().get("/readyz").json()["checks"]
    assert checks["migrations"] == {"ok": False, "pending": 1}


def late(shop: Shop) -> Endpoint:
    """An endpoint whose delivery has been due for ten minutes."""
    endpoint = make_endpoint(shop)
    publish(shop, at=clock.now() - timedelta(minutes=10))
    return endpoint


def test_readyz_names_overdue_deliveries(heartbeats_recorded: None, shop: Shop) -> None:
    late(shop)
    response = Client().get("/readyz")
    assert (response.status_code, response.json()["checks"]["deliveries"]["ok"]) == (503, False)


def test_readyz_ignores_deliveries_of_paused_endpoint(heartbeats_recorded: None, shop: Shop) -> None:
    now = clock.now()
    set_health(late(shop), paused_at=now, paused_until=now, pause_seconds=30)
    assert Client().get("/readyz").json()["checks"]["deliveries"] == {"ok": True, "oldest_due_seconds": 0}


def test_readyz_names_sessions_without_timeouts(heartbeats_recorded: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0")
    response = Client().get("/readyz")
    assert response.status_code == 503
    problem = "Sessions of the database have no lock_timeout, statement_timeout."
    assert response.json()["checks"]["database_sessions"] == {"ok": False, "problem": problem}
