"""`thaiqr-server doctor`: one page for a person who helps, without secrets and personal data."""

import json
import re
import secrets
from datetime import datetime, timedelta

import pytest
from pytest_django import Settings

from config.deployment import doctor
from config.deployment.findings import json_of
from config.env import SECRETS, env
from core import clock
from operations.models import JobRun, NightlyJob
from tests.conftest import SandboxBankClient, Shop
from tests.stack import ROOT
from tests.systems.deployment.installation import Installation

PAYER, ACCOUNT = "Somchai Jaidee", "1234567890"
pytestmark = [pytest.mark.slow, pytest.mark.django_db]


def documented() -> list[str]:
    return re.findall(r"^\| `([A-Z_]+)` \|", (ROOT / "docs" / "settings.md").read_text(), re.M)


def test_page_has_no_value_of_a_setting_that_may_hold_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {name: f"value-{secrets.token_hex(8)}" for name in documented()}
    monkeypatch.setattr(env, "ENVIRON", values)
    page = doctor.examine()
    shown = doctor.as_text(page) + json_of(page)
    hidden = {*SECRETS, "SENTRY_DSN", "OTEL_EXPORTER_OTLP_ENDPOINT", "EMAIL_FROM"}
    assert hidden <= values.keys()
    assert [name for name in hidden if values[name] in shown] == []
    assert {page["settings"][name] for name in hidden} == {"set"}
    assert page["settings"]["RATE_LIMIT"] == values["RATE_LIMIT"]


def test_page_has_no_personal_data_of_payments_and_no_keys(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    bank.notify(code, payer_name=PAYER, payer_account=ACCOUNT)
    page = doctor.examine()
    shown = doctor.as_text(page) + json_of(page)
    assert "heartbeat_silent{beat}" in page["queues, clocks and what waits"]
    for text in (PAYER, "Somchai", ACCOUNT, shop.secret_key, shop.merchant.name, code["payment_id"]):
        assert text not in shown


def test_page_shows_what_is_wrong_first_and_then_jobs_and_versions(
    settings: Settings, noon: datetime
) -> None:
    settings.MONITORING_TOKEN = ""
    JobRun.objects.create(
        job=NightlyJob.AUDIT,
        started_at=noon,
        ended_at=noon + timedelta(seconds=4),
        seconds=4.0,
        differences=2,
    )
    page = doctor.examine()
    text = doctor.as_text(page)
    levels = [each.level for each in page["findings"]]
    assert levels == sorted(levels, key=["problem", "warning", "ok"].index)
    assert text.index("everybody may read /metrics") < text.index("== Versions")
    assert page["last nightly jobs"]["audit"] == f"began {clock.iso(noon)}: differences, 2 differences"
    assert page["versions"]["service"] == settings.VERSION
    assert json.loads(json_of(page))["findings"][0]["advice"]


def test_page_without_database_and_redis_says_so_and_shows_no_password(installed: Installation) -> None:
    broken = {
        "DATABASE_URL": "postgresql://qr:p4ssw0rd@127.0.0.1:1/qr",
        "REDIS_URL": "redis://:p4ssw0rd@127.0.0.1:1/0",
    }
    done = installed.run("doctor", is_checked=False, **broken)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert "Check DATABASE_URL, that the server runs" in done.stdout
    assert "p4ssw0rd" not in done.stdout + done.stderr
    assert installed.settings["SECRET_KEY"] not in installed.run("doctor", "--json").stdout
