"""The same money told three ways at once, and files imported beside each other: one receipt each."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

import banks
from banks.sandbox import SandboxBank
from core import clock
from receipts import inbox, services
from receipts.models import Notice, Receipt, Source, StatementLine
from tests.conftest import BankCaller, new_client
from tests.receipts.statements.cast import bot, detail, line_of, load, open_billed, results_of
from tests.receipts.statements.test_size import detail_of, write
from tests.stack import ROOT, wait_until
from tests.threads import at_once
from transactions.models import Journal, Transaction
from webhooks.models import Event

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("books_are_right")]
ROUNDS = 30


def asking(body: bytes) -> Callable[[], None]:
    """The bank's answer to our question, as it is stored and applied."""

    def hear() -> None:
        notice, now = SandboxBank("x").parse_notice(body), clock.now()
        assert isinstance(notice, banks.Notice)
        receipt = inbox.accept(bank="sandbox", body=body, notice=notice, now=now, source=Source.INQUIRY)
        services.try_to_apply(receipt_id=receipt.id, now=clock.now())

    return hear


def test_a_callback_an_answer_and_a_line_at_once_are_one_payment() -> None:
    shop, caller = open_billed("Race"), BankCaller(new_client())
    for _ in range(ROUNDS):
        code, paid_at = shop.qr_code(), clock.now()
        told = caller.notice(code, paid_at=paid_at)
        body = json.dumps(told).encode()
        tell = partial(BankCaller(new_client()).post, body)
        at_once(tell, asking(body), partial(load, bot(line_of(code, paid_at))))
        services.apply_left(now=clock.now() + services.LEFT_OVER * 2)
        receipt = Receipt.objects.get(payment_id=code["payment_id"])
        assert receipt.transaction_id == told["transaction_id"]
        assert receipt.statement_line.result in ("attached", "new")
        assert Event.objects.filter(subject_id=code["payment_id"], type="payment.succeeded").count() == 1
        assert Transaction.objects.filter(payment_id=code["payment_id"]).count() == 1
    assert Receipt.objects.count() == StatementLine.objects.count() == ROUNDS
    assert set(Notice.objects.values_list("verdict", flat=True)) <= {"new", "repeat"}


def test_a_hundred_copies_of_a_notice_beside_its_line_make_one_receipt() -> None:
    shop, caller = open_billed("Race"), BankCaller(new_client())
    code, paid_at = shop.qr_code(), clock.now()
    told = caller.notice(code, paid_at=paid_at)
    copies = [partial(BankCaller(new_client()).post, told) for _ in range(100)]
    answers = at_once(*copies, partial(load, bot(line_of(code, paid_at))))
    assert {answer.status_code for answer in answers[:-1]} == {200}
    assert (Receipt.objects.count(), Transaction.objects.count()) == (1, 1)
    assert Notice.objects.count() == 100


def test_the_same_file_twice_at_once_is_stored_once() -> None:
    shop = open_billed("Race")
    codes = [line_of(shop.qr_code(), clock.now()) for _ in range(10)]
    body = bot(*codes, *[detail_of(number) for number in range(600)], detail(), detail(), detail(amount="?"))
    results: list[Any] = at_once(*[partial(results_of, body) for _ in range(3)])
    counts = sum((Counter(result.result for result in told) for told in results), Counter[str]())
    assert (counts["new"], counts["known"], counts["unreadable"]) == (612, 2 * 612, 3)
    assert (Receipt.objects.count(), StatementLine.objects.count()) == (612, 613)
    assert Notice.objects.count() == 1
    services.apply_left(now=clock.now() + services.LEFT_OVER * 2)
    assert not Receipt.objects.not_judged().exists()


def test_overlapping_files_in_other_orders_at_once_never_wait_in_a_circle() -> None:
    open_billed("Race")
    lines = [*map(detail_of, range(500)), *(detail(amount="?", name=str(number)) for number in range(20))]
    bodies = [bot(*lines), bot(*lines[::-1]), bot(*lines[250:])]
    at_once(*[partial(load, body) for body in bodies])
    assert (Receipt.objects.count(), Notice.objects.count()) == (500, 20)


@pytest.mark.slow
def test_an_import_that_is_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    open_billed("Killed")
    count = 4_000
    path = write(tmp_path / "day.txt", count)
    for stored in (500, 2_000):
        importer = start(path)
        wait_until(partial(is_stored, stored), 60)
        importer.send_signal(signal.SIGKILL)
        importer.wait()
    assert StatementLine.objects.count() < count
    ended = start(path)
    assert ended.wait(120) == 0
    services.apply_left(now=clock.now() + services.LEFT_OVER * 2)
    assert Receipt.objects.count() == StatementLine.objects.count() == Journal.objects.count() == count
    assert set(Receipt.objects.values_list("outcome", flat=True)) == {"unmatched"}


def start(path: Path) -> "subprocess.Popen[bytes]":
    """The command, in a process of its own on this test's database, which is quick and not durable."""
    given, ours = os.environ["DATABASE_URL"], connection.settings_dict["NAME"]
    environ = os.environ | {"DATABASE_URL": f"{given.rsplit('/', 1)[0]}/{ours}"}
    environ["FIELD_ENCRYPTION_KEYS"] = ",".join(settings.FIELD_ENCRYPTION_KEYS)
    command = [sys.executable, "manage.py", "import_statement", str(path), "--bank", "sandbox", "--quiet"]
    command.append("--skip-checks")
    return subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL)


def is_stored(count: int) -> bool:
    return StatementLine.objects.count() >= count
