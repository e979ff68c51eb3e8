"""The nightly jobs: at their hours, once a day, one at a time, within a deadline; and their metrics."""

import base64
import io
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, time as TimeOfDay, timedelta
from pathlib import Path

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models.functions import Now
from pytest_django import Settings

from config.env import hours_of_jobs
from core.database import rows
from core.work import decoders
from operations.models import DailyClose, JobRun, NightlyJob
from operations.nightly import jobs, runs
from reconciliation.models import BankTransaction, Statement
from reconciliation.statements import dropped_files
from tests.concurrency import run_concurrently
from tests.conftest import Shop
from tests.factories import MerchantFactory
from tests.operations.audit.test_daily_close import damage
from tests.operations.metrics.scraping import families, value
from tests.reconciliation.statements.statement_files import (
    BILLER,
    bot_file,
    csv_file,
    detail,
    import_file,
    open_shop_with_biller,
)
from tests.reconciliation.statements.test_xlsx import NAMES, row, workbook

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
NOON = datetime(2026, 11, 22, 5, 0, tzinfo=UTC)  # in Bangkok it is the day after the statement files
HOURS = {"daily_close": TimeOfDay(0, 15), "audit": TimeOfDay(2, 30)}


@pytest.fixture(autouse=True)
def hours(settings: Settings) -> None:
    settings.NIGHTLY_JOBS = HOURS
    settings.CLOSE_SIGNING_KEY = base64.urlsafe_b64encode(b"k" * 32).decode()
    settings.STATEMENTS_DIR = ""


@pytest.fixture
def at_noon() -> Iterator[None]:
    with time_machine.travel(NOON, tick=False):
        yield


def run_at(bangkok: str) -> list[str]:
    """Run what is due at this time of Bangkok. Returns the jobs that have run so far, in their order."""
    with time_machine.travel(datetime.fromisoformat(f"{bangkok}+07:00"), tick=False):
        runs.run_due()
    return list(JobRun.objects.order_by("pk").values_list("job", flat=True))


def test_jobs_run_once_a_day_at_their_hours() -> None:
    assert run_at("2026-11-22 00:14") == []
    assert run_at("2026-11-22 00:15") == ["daily_close"]
    assert run_at("2026-11-22 02:29") == ["daily_close"]
    assert run_at("2026-11-22 23:00") == ["daily_close", "audit"]
    assert run_at("2026-11-22 23:01") == ["daily_close", "audit"]
    assert run_at("2026-11-23 03:00") == ["daily_close", "audit"] * 2
    assert DailyClose.objects.count() == 2


def test_job_without_its_setting_does_not_run(settings: Settings) -> None:
    settings.CLOSE_SIGNING_KEY = ""
    settings.NIGHTLY_JOBS = {"daily_close": TimeOfDay(0, 15), "import_statements": TimeOfDay(0, 15)}
    assert run_at("2026-11-22 12:00") == []
    assert value("job_enabled", nightly_job="daily_close") == value("job_enabled", nightly_job="audit") == 0


@pytest.mark.usefixtures("at_noon")
def test_metrics_show_what_a_job_found(shop: Shop) -> None:
    shop.qr_code()
    damage("UPDATE payments_payment SET status = 'succeeded', completed_at = created_at")
    runs.run_due()
    found = value("job_differences", nightly_job="audit")
    assert found > 0
    assert found == len(printed_findings())
    assert value("job_last_success_timestamp_seconds", nightly_job="audit") == NOON.timestamp()
    assert value("job_failed", nightly_job="audit") == 0
    assert value("job_differences", nightly_job="daily_close") == 0


def printed_findings() -> list[str]:
    """What the command prints."""
    output = io.StringIO()
    with pytest.raises(CommandError, match="books are wrong"):
        call_command("audit", stdout=output)
    return output.getvalue().splitlines()


@pytest.mark.usefixtures("at_noon")
def test_failed_job_does_not_stop_the_others(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    settings.NIGHTLY_JOBS = {"import_statements": TimeOfDay(1), "reconcile": TimeOfDay(2)}
    settings.STATEMENTS_DIR = "/nowhere"
    runs.run_due()
    assert value("job_failed", nightly_job="import_statements") == 1
    assert value("job_failed", nightly_job="reconcile") == 0
    assert JobRun.objects.get(job="import_statements").error == "NotADirectoryError"
    assert "import_statements failed" in caplog.text


def test_run_of_a_killed_worker_is_repeated_after_its_lease() -> None:
    with time_machine.travel(NOON, tick=False):
        day = NOON.date()
        row = JobRun.objects.create(
            job="audit", day=day, attempts=1, started_at=NOON, lease_until=Now() + timedelta(hours=1)
        )
        runs.run_due()
        assert set(JobRun.objects.filter(ended_at=None)) == {row}, "nothing else runs meanwhile"
        JobRun.objects.update(lease_until=Now() - timedelta(seconds=1))
        runs.run_due()
        row.refresh_from_db()
        assert (row.attempts, row.lease_until, row.error) == (2, None, "")


def test_two_workers_run_a_job_once() -> None:
    with time_machine.travel(NOON, tick=False):
        run_concurrently(*[runs.run_due] * 4)
        runs.run_due()
    assert sorted(JobRun.objects.values_list("job", "attempts")) == [("audit", 1), ("daily_close", 1)]


def work_without_end(now: datetime) -> Iterator[str]:
    while True:
        rows.run("SELECT pg_sleep(0.1)", [])
        yield "it goes on"


def test_job_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    settings.NIGHTLY_JOBS = {"audit": TimeOfDay(0)}
    monkeypatch.setattr(runs, "DEADLINE", timedelta(seconds=0.5))
    monkeypatch.setitem(jobs._JOBS, NightlyJob.AUDIT, work_without_end)
    began = time.perf_counter()
    runs.run_due()
    assert time.perf_counter() - began < 20
    assert JobRun.objects.get().error == "OperationalError"
    assert connection.is_usable()


def drop(folder: Path, name: str, body: bytes, *, age: float = 60) -> Path:
    """Put a file into a folder, as if it were there for `age` seconds."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(body)
    os.utime(path, (time.time() - age, time.time() - age))
    return path


def test_dropped_statements_are_imported_and_moved(tmp_path: Path, settings: Settings) -> None:
    open_shop_with_biller("Somtam House")
    settings.STATEMENTS_DIR = str(tmp_path)
    folder = tmp_path / "sandbox"
    drop(folder, "day.txt", bot_file(detail()))
    drop(folder, "torn.txt", bot_file(detail(), end=b""))
    drop(folder, "growing.txt", bot_file(detail()), age=1)
    assert jobs.run(NightlyJob.IMPORT_STATEMENTS, NOON) == 1
    left = {str(path.relative_to(folder)) for path in folder.rglob("*.txt")}
    assert left == {"imported/day.txt", "failed/torn.txt", "growing.txt"}
    assert set(Statement.objects.values_list("actor", flat=True)) == {"command:import_statement"}
    drop(folder, "day.txt", bot_file(detail()))
    assert list(dropped_files.import_all()) == []
    assert len(list((folder / "imported").iterdir())) == 2
    assert value("statement_age_seconds", bank="sandbox") < 60


def test_statement_that_cannot_be_moved_stops_no_other_file_and_is_reported_every_night(
    tmp_path: Path, settings: Settings
) -> None:
    open_shop_with_biller("Somtam House")
    MerchantFactory(bank="scb", mode="live", biller_id=BILLER)
    settings.STATEMENTS_DIR = str(tmp_path)
    line = f"2026-11-21,12:00:00,{BILLER},NOBODYKNOWSTHIS00000,,,1500.00,credit,,014"
    drop(tmp_path / "sandbox", "day.txt", bot_file(detail()))
    drop(tmp_path / "sandbox", "next.txt", bot_file(detail(ref1="ANOTHER0000000000000")))
    drop(tmp_path / "scb", "day.csv", csv_file(line))
    (tmp_path / "sandbox" / "imported").touch()
    for _ in range(2):
        assert list(dropped_files.import_all()) == [
            "sandbox day.txt: the file cannot be moved: File exists",
            "sandbox next.txt: the file cannot be moved: File exists",
        ]
        assert (tmp_path / "scb" / "imported" / "day.csv").exists()
        assert BankTransaction.objects.count() == 3
    (tmp_path / "sandbox" / "imported").unlink()
    assert jobs.run(NightlyJob.IMPORT_STATEMENTS, NOON) == 0
    assert len(list((tmp_path / "sandbox" / "imported").iterdir())) == 2


def test_excel_file_whose_reader_is_busy_stays_for_the_next_night(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_shop_with_biller("Somtam House")
    settings.STATEMENTS_DIR = str(tmp_path)
    monkeypatch.setattr(decoders.WORKBOOK, "wait_seconds", 0.2)
    path = drop(tmp_path / "sandbox", "day.xlsx", workbook(NAMES, row()))
    with decoders.WORKBOOK.taken():
        assert list(dropped_files.import_all()) == [
            "sandbox day.xlsx: Another Excel file is being read. Try again in a minute."
        ]
    assert path.exists()
    assert list(dropped_files.import_all()) == []
    assert not path.exists()


def test_folder_of_a_bank_that_cannot_be_read_is_reported(tmp_path: Path, settings: Settings) -> None:
    open_shop_with_biller("Somtam House")
    settings.STATEMENTS_DIR = str(tmp_path)
    (tmp_path / "sandbox").touch()
    assert list(dropped_files.import_all()) == ["sandbox: the folder cannot be read: Not a directory"]


@pytest.mark.usefixtures("at_noon")
def test_reconcile_counts_the_differences_of_yesterday(settings: Settings) -> None:
    MerchantFactory(bank="scb", mode="live", biller_id=BILLER)
    line = f"2026-11-21,12:00:00,{BILLER},NOBODYKNOWSTHIS00000,,,1500.00,credit,,014"
    import_file(csv_file(line), bank="scb")
    assert jobs.run(NightlyJob.RECONCILE, NOON) == 1


@pytest.mark.usefixtures("at_noon")
def test_commands_are_shown_as_runs() -> None:
    call_command("audit")
    assert JobRun.objects.get().day is None
    assert value("job_last_success_timestamp_seconds", nightly_job="audit") == NOON.timestamp()
    assert families()["job_failed"].samples[0].value == 0


@pytest.mark.usefixtures("at_noon")
def test_reconcile_by_command_is_a_run_if_it_compares_what_the_job_does() -> None:
    MerchantFactory(bank="scb", mode="live", biller_id=BILLER)
    line = f"2026-11-21,12:00:00,{BILLER},NOBODYKNOWSTHIS00000,,,1500.00,credit,,014"
    import_file(csv_file(line), bank="scb")
    call_command("reconcile", "2026-11-20", stdout=io.StringIO())
    with pytest.raises(CommandError, match="Differences"):
        call_command("reconcile", "2026-11-21", "--bank", "scb", stdout=io.StringIO())
    assert not JobRun.objects.exists()
    with pytest.raises(CommandError, match="Differences"):
        call_command("reconcile", "2026-11-21", stdout=io.StringIO())
    run = JobRun.objects.get()
    assert (run.job, run.day, run.differences, run.error) == (NightlyJob.RECONCILE, None, 1, "")


AT_HALF_PAST_THREE = dict.fromkeys(map(str, NightlyJob), TimeOfDay(3, 30))


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("audit=02:30, reconcile=07:00", {"audit": TimeOfDay(2, 30), "reconcile": TimeOfDay(7)}),
        ("", {}),
        ("retention=04:00", {"retention": TimeOfDay(4)}),
    ],
)
def test_hours_of_jobs_are_read(
    monkeypatch: pytest.MonkeyPatch, text: str, hours: dict[str, TimeOfDay]
) -> None:
    monkeypatch.setenv("NIGHTLY_JOBS", text)
    assert hours_of_jobs("NIGHTLY_JOBS", AT_HALF_PAST_THREE) == {"retention": TimeOfDay(3, 30)} | hours


@pytest.mark.parametrize("text", ["audit", "audit=25:00", "sleep=01:00", "audit=1:00,audit=2:00"])
def test_wrong_hours_of_jobs_are_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("NIGHTLY_JOBS", text)
    with pytest.raises(ValueError):
        hours_of_jobs("NIGHTLY_JOBS", AT_HALF_PAST_THREE)
