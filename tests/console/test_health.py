"""Health, readiness and metrics."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client

from console import heartbeats
from console.models import Heartbeat
from core import clock
from tests.conftest import BankCaller, Shop


@pytest.fixture
def signs_of_life(db: None) -> None:
    for name in (heartbeats.BEAT, *heartbeats.QUEUES):
        heartbeats.sign(name, now=clock.now())


def test_healthz_asks_nobody() -> None:
    assert Client().get("/healthz").json() == {"status": "ok"}


def test_ready_when_everything_is_alive(signs_of_life: None) -> None:
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    assert set(answer.json()["checks"]) == {
        "database", "migrations", "beat", "worker_default", "worker_webhooks", "deliveries",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["beat", "default", "webhooks"])
def test_a_part_that_fell_silent_is_named(signs_of_life: None, name: str) -> None:
    Heartbeat.objects.filter(name=name).update(at=clock.now() - timedelta(minutes=1))
    answer = Client().get("/readyz")
    part = name if name == "beat" else f"worker_{name}"
    failed = {check for check, result in answer.json()["checks"].items() if not result["ok"]}
    assert (answer.status_code, failed) == (503, {part})


def test_a_missing_migration_is_named(signs_of_life: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'receipts'")
        missing = cursor.rowcount
    checks = Client().get("/readyz").json()["checks"]
    assert checks["migrations"] == {"ok": False, "pending": missing}


def test_metrics_count_what_waits(shop: Shop, bank: BankCaller) -> None:
    shop.qr_code()
    bank.tell(shop.qr_code(), satang=1)
    bank.post(b"garbage")
    lines = Client().get("/metrics").content.decode().splitlines()
    assert "payments_pending 2.0" in lines
    assert "receipts_for_staff 1.0" in lines
    assert "notices_for_staff 1.0" in lines
    assert "webhook_deliveries_due 0.0" in lines
