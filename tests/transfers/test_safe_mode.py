"""Safe mode: how a restored database is told from the original, and what it still does."""

import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from io import StringIO
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from banks import TransferResult
from config.devstack.postgres_programs import find_programs
from core import clock
from core.work import redis
from tests.database_template import new_database
from tests.sqlstates import CHECK_VIOLATION, NOT_ALLOWED, UNIQUE_VIOLATION, sqlstate
from tests.staff_acts import REASON, acts_of_staff, run_act
from tests.transfers.builders import FakeHandler, Serving, pass_time, queued, send_due
from transfers import safe_mode, sent_orders, services
from transfers.models import SafeMode, SafeModeCause, Transfer, TransferState

pytestmark = pytest.mark.django_db
MARKS = ("transfers_databasemark", "transfers_databaseidentity")
MISSING, FOUND = TransferResult("unknown"), TransferResult("succeeded", "b-1")


def rewrite(sql: str) -> None:
    """Change rows as a restore would, past the triggers."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL session_replication_role = replica; {sql}")
        cursor.execute("SET LOCAL session_replication_role = origin")


def begin_again(timeline: int = -1) -> None:
    """Make this database one that sent an order, and was then restored into another timeline."""
    safe_mode.check(now=clock.now())
    rewrite(f"UPDATE transfers_databaseidentity SET timeline = {timeline}")


def cause() -> str | None:
    safe_mode.check(now=clock.now())
    found = safe_mode.current()
    return None if found is None else found.cause


# --- what is a restore ---------------------------------------------------------------------------------


def test_new_database_is_marked_and_sends(handler: FakeHandler, served_by: Serving) -> None:
    bank, transfer = served_by(sends=[FOUND]), queued()
    send_due(handler)
    assert bank.sent == [transfer.id]
    assert not safe_mode.is_on() and not safe_mode.check(now=clock.now())


def test_used_database_without_a_mark_is_in_safe_mode(handler: FakeHandler, served_by: Serving) -> None:
    served_by(sends=[FOUND])
    queued()
    send_due(handler)
    rewrite("; ".join(f"DELETE FROM {table}" for table in MARKS))
    assert safe_mode.is_on() and cause() == SafeModeCause.COPY


@pytest.mark.parametrize("column", ["system_identifier", "database_oid", "mark_xmin"])
def test_database_elsewhere_is_a_copy(column: str) -> None:
    safe_mode.check(now=clock.now())
    rewrite(f"UPDATE transfers_databaseidentity SET {column} = {column} + 1")
    assert safe_mode.is_on() and cause() == SafeModeCause.COPY


def test_another_timeline_is_a_restored_server() -> None:
    begin_again()
    assert safe_mode.is_on() and cause() == SafeModeCause.NEW_TIMELINE


def test_standby_with_all_sent_orders_takes_over_if_commits_wait_for_it(
    handler: FakeHandler, served_by: Serving, settings: Settings
) -> None:
    settings.SYNCHRONOUS_STANDBY = True
    served_by(sends=[FOUND])
    queued()
    send_due(handler)
    begin_again()
    assert safe_mode.is_on(), "until somebody compares it with Redis"
    assert not safe_mode.check(now=clock.now()) and not safe_mode.is_on()


def test_standby_without_a_sent_order_does_not_take_over(
    handler: FakeHandler, served_by: Serving, settings: Settings
) -> None:
    settings.SYNCHRONOUS_STANDBY = True
    served_by(sends=[FOUND])
    transfer = queued()
    send_due(handler)
    begin_again()
    lose(transfer)
    assert cause() == SafeModeCause.NEW_TIMELINE
    assert SafeMode.objects.get().lost_orders == transfer.id


def test_standby_does_not_take_over_if_redis_lost_its_data(
    handler: FakeHandler, served_by: Serving, settings: Settings
) -> None:
    settings.SYNCHRONOUS_STANDBY = True
    served_by(sends=[FOUND])
    queued()
    send_due(handler)
    begin_again()
    redis.try_call(lambda client: client.flushdb())
    assert cause() == SafeModeCause.NEW_TIMELINE


@pytest.mark.slow
def test_standby_does_not_take_over_if_nobody_compared_the_orders_for_minutes(
    handler: FakeHandler, served_by: Serving, settings: Settings
) -> None:
    """Redis did not answer while the newest order was sent, and came back with the orders of before."""
    settings.SYNCHRONOUS_STANDBY = True
    served_by(sends=[FOUND])
    safe_mode.check(now=clock.now())
    without_redis(settings, partial(send_new_order, handler))
    redis.try_call(lambda client: client.delete(sent_orders.COMPLETE.format(installation())))
    lose(Transfer.objects.get())
    move_to_a_new_timeline()
    assert sent_orders.compare(installation()) == ([], False)
    assert cause() == SafeModeCause.NEW_TIMELINE


@pytest.mark.slow
def test_standby_waits_a_minute_for_redis(
    handler: FakeHandler, served_by: Serving, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine is lost with the primaries of PostgreSQL and Redis: the new ones come one after the other."""
    settings.SYNCHRONOUS_STANDBY = True
    monkeypatch.setattr(safe_mode, "_patience", safe_mode._Patience())
    served_by(sends=[FOUND])
    send_new_order(handler)
    begin_again()
    now = clock.now()
    without_redis(settings, lambda: assert_only_waits(now))
    assert not safe_mode.check(now=now) and not safe_mode.is_on()
    move_to_a_new_timeline()
    without_redis(settings, lambda: assert_only_waits(now))
    without_redis(settings, lambda: safe_mode.check(now=now + timedelta(minutes=1)))
    assert SafeMode.objects.get().cause == SafeModeCause.NEW_TIMELINE


def assert_only_waits(now: datetime) -> None:
    assert safe_mode.check(now=now) and safe_mode.is_on()
    assert not SafeMode.objects.exists()


def test_orders_count_as_complete_for_minutes() -> None:
    safe_mode.check(now=clock.now())
    assert sent_orders.compare(installation()) == ([], True)
    left: Any = redis.try_call(lambda client: client.ttl(sent_orders.COMPLETE.format(installation())))
    assert 0 < left <= sent_orders.COMPLETE_SECONDS


@pytest.mark.slow
def test_order_that_waited_for_approval_is_among_the_newest(
    handler: FakeHandler, served_by: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was ordered long before those that were sent before it."""
    monkeypatch.setattr(sent_orders, "KEPT", 1)
    served_by(sends=[FOUND, FOUND])
    safe_mode.check(now=clock.now())
    send_new_order(handler)
    waited = Transfer.objects.get()
    send_new_order(handler)
    rewrite(f"UPDATE transfers_transfer SET submitted_at = now() + interval '1 h' WHERE id = '{waited.id}'")
    assert not safe_mode.check(now=clock.now())
    lose(waited)
    assert found_missing() == [waited.id]


def test_order_that_was_sent_without_redis_is_added(
    handler: FakeHandler, served_by: Serving, settings: Settings
) -> None:
    served_by(sends=[FOUND])
    safe_mode.check(now=clock.now())
    without_redis(settings, partial(send_new_order, handler))
    assert not safe_mode.check(now=clock.now())
    transfer = Transfer.objects.get()
    lose(transfer)
    assert found_missing() == [transfer.id]


def send_new_order(handler: FakeHandler) -> None:
    queued()
    send_due(handler)


def move_to_a_new_timeline() -> None:
    rewrite("UPDATE transfers_databaseidentity SET timeline = -1")


def found_missing() -> list[str]:
    found = sent_orders.compare(installation())
    assert found is not None
    return found.missing


def without_redis(settings: Settings, run: Callable[[], object]) -> None:
    url, settings.REDIS_URL = settings.REDIS_URL, "redis://127.0.0.1:1/0"
    run()
    settings.REDIS_URL = url
    redis._breaker = redis.RedisBreaker()


def installation() -> str:
    return str(safe_mode._read().installation)


def lose(transfer: Transfer) -> None:
    """Forget that an order was sent, as a disk that was put back does."""
    rewrite(
        f"UPDATE transfers_transfer SET state = 'queued', submitted_at = NULL, completed_at = NULL, "
        f"due_at = now() WHERE id = '{transfer.id}'; "
    )


def test_disk_that_was_put_back_lacks_an_order_that_redis_has(
    handler: FakeHandler, served_by: Serving
) -> None:
    bank = served_by(sends=[FOUND], inquiries=[MISSING])
    transfer = queued()
    send_due(handler)
    lose(transfer)
    assert not safe_mode.is_on(), "the database itself cannot know"
    send_due(handler)
    assert bank.sent == [transfer.id], "it was not sent again"
    assert (SafeMode.objects.get().cause, SafeMode.objects.get().lost_orders) == ("lost_orders", transfer.id)


def test_list_of_sent_orders_is_filled_again_when_redis_lost_it(
    handler: FakeHandler, served_by: Serving
) -> None:
    served_by(sends=[FOUND])
    transfer = queued()
    send_due(handler)
    redis.try_call(lambda client: client.flushdb())
    assert not safe_mode.check(now=clock.now())
    lose(transfer)
    assert cause() == SafeModeCause.LOST_ORDERS


def test_list_of_sent_orders_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_orders, "KEPT", 3)
    safe_mode.check(now=clock.now())
    for number in range(5):
        sent_orders.note(f"wd_{number}")
    assert found_missing() == ["wd_2", "wd_3", "wd_4"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("options", [["--clean"], ["--data-only"]])
def test_dump_that_is_loaded_into_the_same_database_is_a_copy(options: list[str]) -> None:
    safe_mode.check(now=clock.now())
    dump = subprocess.check_output([*program("pg_dump", *options), *(f"--table={each}" for each in MARKS)])
    with connection.cursor() as cursor:
        cursor.execute("; ".join(f"DELETE FROM {table}" for table in MARKS))
        cursor.execute("SELECT pg_current_xact_id()")
    load(dump, program("psql"))
    assert cause() == SafeModeCause.COPY


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_dump_that_is_loaded_into_another_database_is_a_copy() -> None:
    safe_mode.check(now=clock.now())
    dump = subprocess.check_output(
        [*program("pg_dump", "--data-only"), *(f"--table={each}" for each in MARKS)]
    )
    url = new_database(f"restored_{uuid4().hex}")
    load(dump, [str(find_programs() / "psql"), url])
    with psycopg.connect(url) as restored:
        state = safe_mode._State(*restored.execute(safe_mode._READ).fetchone())  # type: ignore[misc]
    assert state.cause == SafeModeCause.COPY


def program(name: str, *options: str) -> list[str]:
    """A program of PostgreSQL that works on the database of this test."""
    name_of_database = str(connection.settings_dict["NAME"])
    url = os.environ["DATABASE_URL"].rpartition("/")[0] + "/" + name_of_database
    return [str(find_programs() / name), url, *options]


def load(dump: bytes, command: list[str]) -> None:
    subprocess.run(
        [*command, "--quiet", "--set=ON_ERROR_STOP=1"], input=dump, check=True, capture_output=True
    )


@pytest.mark.django_db(transaction=True)
def test_vacuum_does_not_look_like_a_restore() -> None:
    safe_mode.check(now=clock.now())
    with connection.cursor() as cursor:
        for kind in ("FREEZE", "FULL"):
            cursor.execute(f"VACUUM ({kind}) {', '.join(MARKS)}")
    assert cause() is None


# --- what safe mode stops, and what goes on ------------------------------------------------------------


@pytest.fixture
def restored(settings: Settings) -> Iterator[None]:
    """A database in safe mode."""
    begin_again()
    safe_mode.check(now=clock.now())
    yield


@pytest.mark.usefixtures("restored")
def test_order_that_the_bank_has_is_found_and_not_sent_again(
    handler: FakeHandler, served_by: Serving
) -> None:
    bank, transfer = served_by(inquiries=[TransferResult("processing", "b-1"), FOUND]), queued()
    send_due(handler)
    transfer.refresh_from_db()
    assert (bank.sent, transfer.state, handler.submitted) == ([], TransferState.SUBMITTED, [transfer.id])
    pass_time()
    send_due(handler)
    transfer.refresh_from_db()
    assert (bank.sent, transfer.state, handler.statuses) == ([], TransferState.SUCCEEDED, ["succeeded"])


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("status", ["succeeded", "failed", "returned"])
def test_order_that_ended_at_the_bank_ends_here(
    handler: FakeHandler, served_by: Serving, status: str
) -> None:
    bank, transfer = served_by(inquiries=[TransferResult(status)]), queued()  # type: ignore[arg-type]
    send_due(handler)
    transfer.refresh_from_db()
    assert (bank.sent, transfer.state) == ([], status)


@pytest.mark.usefixtures("restored")
@pytest.mark.slow
def test_order_that_the_bank_does_not_know_waits_and_is_sent_once_after_staff_resume(
    handler: FakeHandler, served_by: Serving
) -> None:
    bank, transfer = served_by(sends=[FOUND], inquiries=[MISSING]), queued()
    with pytest.raises(ValidationError, match="not asked yet"):
        safe_mode.resume(reason=REASON, now=clock.now())
    for _ in range(3):
        send_due(handler)
        pass_time()
    transfer.refresh_from_db()
    assert (bank.sent, len(bank.inquired), transfer.state) == ([], 3, TransferState.QUEUED)
    safe_mode.resume(reason=REASON, now=clock.now())
    for _ in range(3):
        send_due(handler)
        pass_time()
    assert (bank.sent, handler.statuses) == ([transfer.id], ["succeeded"])


def test_submission_looks_at_safe_mode_itself(handler: FakeHandler, served_by: Serving) -> None:
    """A worker may have claimed the order before the restore was noticed."""
    served_by()
    transfer = queued()
    begin_again()
    assert not services.submit(transfer.id, handler, now=clock.now())
    transfer.refresh_from_db()
    assert (transfer.state, handler.submitted) == (TransferState.QUEUED, [])


@pytest.mark.usefixtures("restored")
@pytest.mark.slow
def test_operators_see_safe_mode(client: Client, admin_client: Client) -> None:
    assert "thaiqr_safe_mode 1.0" in client.get("/metrics").content.decode()
    ready = client.get("/readyz").json()
    assert ready["checks"]["safe_mode"]["ok"] and "safe_mode" in ready["warnings"]
    page = admin_client.get("/admin/").content.decode()
    assert "Safe mode: no money is sent." in page
    safe_mode.resume(reason=REASON, now=clock.now())
    assert "thaiqr_safe_mode 0.0" in client.get("/metrics").content.decode()
    assert (
        "Safe mode"
        not in admin_client.get("/admin/withdrawals/withdrawal/").content.decode().split("<nav")[0]
    )


# --- how it ends ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("restored")
@pytest.mark.slow
def test_staff_resume_with_a_reason_and_a_record(
    admin_client: Client, handler: FakeHandler, served_by: Serving
) -> None:
    served_by(inquiries=[MISSING])
    queued()
    period = SafeMode.objects.get()
    page = run_act(admin_client, SafeMode, period.pk, "resume")
    assert "Banks were not asked yet about 1 orders" in page and safe_mode.is_on()
    assert f"{REASON}</textarea>" in page, "the form keeps what staff typed"
    send_due(handler)
    run_act(admin_client, SafeMode, period.pk, "resume")
    period.refresh_from_db()
    assert (safe_mode.is_on(), period.ended_by) == (False, "staff:admin")
    record = acts_of_staff().get()
    assert (record.act, record.reason, record.object_id) == (Act.TRANSFERS_RESUMED, REASON, str(period.pk))
    run_act(admin_client, SafeMode, period.pk, "resume")
    assert acts_of_staff().count() == 1


@pytest.mark.slow
def test_staff_pause_and_resume(admin_client: Client, handler: FakeHandler, served_by: Serving) -> None:
    bank, transfer = served_by(sends=[FOUND], inquiries=[MISSING]), queued()
    address = reverse("admin:transfers_safemode_list_act", args=["pause"])
    assert "sends no money" in admin_client.get(address).content.decode()
    admin_client.post(address, {"reason": REASON, "token": str(uuid4())})
    assert cause() == SafeModeCause.BY_STAFF
    send_due(handler)
    assert bank.sent == []
    run_act(admin_client, SafeMode, SafeMode.objects.get().pk, "resume")
    send_due(handler)
    assert bank.sent == [transfer.id]
    acts = list(acts_of_staff().values_list("act", flat=True))
    assert acts == [Act.TRANSFERS_PAUSED, Act.TRANSFERS_RESUMED]


@pytest.mark.slow
def test_commands_pause_report_and_resume(handler: FakeHandler, served_by: Serving) -> None:
    served_by(inquiries=[MISSING])
    assert call_command("resume_transfers", stdout=StringIO()) == "Safe mode is off: money is sent as usual."
    queued()
    call_command("pause_transfers", reason="A disk was put back", stdout=StringIO())
    report = call_command("resume_transfers", stdout=StringIO())
    assert "Nothing is resumed." in report and safe_mode.is_on()
    assert "Staff paused all outgoing money" in report and "sent when safe mode ends: 1" in report
    with pytest.raises(CommandError, match=r"not asked yet about 1 orders.*queue transfers ask"):
        call_command("resume_transfers", reason=REASON, stdout=StringIO())
    send_due(handler)
    assert "sent now: 1" in call_command("resume_transfers", reason=REASON, stdout=StringIO())
    assert not safe_mode.is_on()
    assert [(each.act, each.reason) for each in AuditRecord.objects.order_by("id")] == [
        (Act.TRANSFERS_PAUSED, "A disk was put back"),
        (Act.TRANSFERS_RESUMED, REASON),
    ]


@pytest.mark.usefixtures("restored")
def test_resume_without_inquiries_must_be_asked_for(served_by: Serving) -> None:
    served_by()
    queued()
    call_command("resume_transfers", "--without-inquiries", reason=REASON, stdout=StringIO())
    assert not safe_mode.is_on()


@pytest.mark.slow
def test_order_that_was_lost_before_staff_resumed_is_no_new_restore(
    handler: FakeHandler, served_by: Serving
) -> None:
    served_by(sends=[FOUND], inquiries=[MISSING])
    transfer = queued()
    send_due(handler)
    lose(transfer)
    assert cause() == SafeModeCause.LOST_ORDERS
    call_command("resume_transfers", "--without-inquiries", reason=REASON, stdout=StringIO())
    assert not safe_mode.check(now=clock.now())


def test_period_of_safe_mode_only_ends() -> None:
    safe_mode.pause(reason=REASON, now=clock.now())
    assert sqlstate("DELETE FROM transfers_safemode") == NOT_ALLOWED
    assert sqlstate("UPDATE transfers_safemode SET cause = 'copy'") == CHECK_VIOLATION
    columns = "(cause, started_at, lost_orders, ended_by)"
    second = f"INSERT INTO transfers_safemode {columns} VALUES ('copy', now(), '', '')"
    assert sqlstate(second) == UNIQUE_VIOLATION
    safe_mode.resume(reason=REASON, now=clock.now())
    assert sqlstate("UPDATE transfers_safemode SET ended_at = NULL, ended_by = ''") == CHECK_VIOLATION
