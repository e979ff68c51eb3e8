"""The access log: one line a request, in order, written together."""

import io
import json
import logging
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory

from core.http.middleware import AccessMiddleware
from core.observing import access_log
from core.observing.access_log import AccessLog, BoundedFile
from core.observing.logs import JsonFormatter
from tests.conftest import Shop
from tests.reconciliation.builders import staff_client
from tests.stack import wait_until


@pytest.fixture
def written() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def log(written: io.StringIO) -> AccessLog:
    return AccessLog(written)


@pytest.mark.slow
def test_access_lines_are_written_in_order(log: AccessLog, written: io.StringIO) -> None:
    for number in range(3):
        log.add(str(number))
    wait_until(lambda: written.getvalue() == "0\n1\n2\n", 60)
    log.add("3")
    wait_until(lambda: written.getvalue().endswith("3\n"), 60)


def test_access_lines_are_written_at_exit(log: AccessLog, written: io.StringIO) -> None:
    log.add("last")
    log.flush()
    assert written.getvalue() == "last\n"


@pytest.mark.slow
def test_no_access_line_is_lost_or_doubled_by_threads(log: AccessLog, written: io.StringIO) -> None:
    def add(thread: int) -> None:
        for number in range(2_000):
            log.add(f"{thread} {number}")
            if number % 100 == 0:
                log.flush()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, range(4)))
    log.flush()
    wait_until(lambda: len(written.getvalue().split("\n")) == 8_001, 60)
    lines = written.getvalue().splitlines()
    assert len(set(lines)) == 8_000


def test_access_log_whose_reader_is_gone_drops_its_lines() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    stream = open(write_end, "w", closefd=False)  # noqa: SIM115 (closing it would write again)
    log = AccessLog(stream)
    log.add("nobody reads this")
    log.flush()
    with pytest.raises(BrokenPipeError):
        stream.close()
    os.close(write_end)


@pytest.mark.slow
def test_access_log_in_a_file_is_bounded_for_all_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_log, "MAX_FILE_BYTES", 10_000)
    path = tmp_path / "access.log"
    path.touch(mode=0o600)
    logs = [AccessLog(BoundedFile(path)) for _ in range(4)]  # each has the file open, as a process has

    def add(log: AccessLog) -> None:
        for number in range(1_000):
            log.add(f"{number:0100}")
            log.flush()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, logs))
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["access.log", "access.log.1"]
    # Each log notices the limit only before its next line.
    assert path.stat().st_size + (tmp_path / "access.log.1").stat().st_size <= 2 * (10_000 + 4 * 101)
    assert {len(line) for line in path.read_text().splitlines()} <= {100}


def test_process_whose_file_is_gone_goes_on_in_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_log, "MAX_FILE_BYTES", 5)
    # A thread of a log that flushes meanwhile begins another file.
    monkeypatch.setattr(access_log, "BUFFER_SECONDS", 3600.0)
    path = tmp_path / "access.log"
    busy, idle = AccessLog(BoundedFile(path)), AccessLog(BoundedFile(path))
    for number in range(3):
        busy.add(f"busy {number}")
        busy.flush()
    idle.add("idle")
    idle.flush()
    assert path.read_text() == "busy 2\nidle\n"


def test_access_line_has_the_client_address(log: AccessLog, written: io.StringIO) -> None:
    middleware = AccessMiddleware(lambda request: HttpResponse(status=204))
    middleware.access_log = log
    middleware(RequestFactory().get("/healthz", REMOTE_ADDR="203.0.113.7"))
    log.flush()
    line = json.loads(written.getvalue())
    assert (line["address"], line["status"], line["log"]) == ("203.0.113.7", 204, "access")


@pytest.mark.django_db
@pytest.mark.slow
def test_access_line_names_the_member_of_staff_and_the_key(
    log: AccessLog, written: io.StringIO, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_log, "of_this_process", lambda: log)
    somsri = staff_client("somsri", "payments.view_payment")
    somsri.handler.load_middleware()
    somsri.get("/admin/payments/payment/")
    key_client = Client()
    key_client.handler.load_middleware()
    key_client.get("/v1/balance", headers={"Authorization": f"Bearer {shop.secret_key}"})
    log.flush()
    console, api = map(json.loads, written.getvalue().splitlines())
    assert (console["actor"], console["merchant"]) == ("staff:somsri", None)
    assert (api["actor"][:4], api["merchant"]) == ("key:", shop.merchant.id)


def documented_fields(kind: str) -> set[str]:
    page = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
    table = page.split("## Logs")[1].split("Fields of the security log")[0]
    return set(re.findall(rf"^\| `(\w+)` \| (?:all|{kind}) \|", table, re.MULTILINE))


def test_documented_fields_of_access_lines_are_those_that_exist(log: AccessLog, written: io.StringIO) -> None:
    middleware = AccessMiddleware(lambda request: HttpResponse(status=204))
    middleware.access_log = log
    middleware(RequestFactory().get("/healthz"))
    log.flush()
    assert set(json.loads(written.getvalue())) == documented_fields("access")


def test_documented_fields_of_messages_are_those_that_exist() -> None:
    try:
        raise ValueError
    except ValueError:
        record = logging.LogRecord("nightly", logging.ERROR, "", 1, "failed", (), sys.exc_info())
    assert set(json.loads(JsonFormatter().format(record))) == documented_fields("messages")
