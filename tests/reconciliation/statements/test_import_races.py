"""Concurrent reports of the same money, and concurrent imports, make one bank transaction."""

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import banks
from banks.sandbox import SandboxBank
from core import clock
from reconciliation.matching import intake, services as matching
from reconciliation.models import BankNotification, BankTransaction, ReportSource, StatementLine
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, new_client
from tests.examples import examples
from tests.reconciliation.statements.statement_files import (
    bot_file,
    credit_line,
    detail,
    import_file,
    import_results,
    open_shop_with_biller,
)
from tests.systems.volume.test_large_files import detail_of
from transactions.models import Transaction
from webhooks.models import Event

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]
ROUNDS = examples(30)


def asking(body: bytes) -> Callable[[], None]:
    """The answer to an inquiry, stored and applied."""

    def hear() -> None:
        notification, now = SandboxBank("x").parse_notification(body), clock.now()
        assert isinstance(notification, banks.ReportedTransaction)
        bank_transaction = intake.receive(
            bank="sandbox", body=body, notification=notification, now=now, source=ReportSource.INQUIRY
        )
        matching.try_apply(bank_transaction_id=bank_transaction.id, now=clock.now())

    return hear


def test_concurrent_callback_inquiry_and_statement_line_are_one_payment() -> None:
    shop, caller = open_shop_with_biller("Race"), SandboxBankClient(new_client())
    for _ in range(ROUNDS):
        code, paid_at = shop.qr_code(), clock.now()
        reported = caller.notification(code, paid_at=paid_at)
        body = json.dumps(reported).encode()
        report_money = partial(SandboxBankClient(new_client()).post, body)
        run_concurrently(
            report_money, asking(body), partial(import_file, bot_file(credit_line(code, paid_at)))
        )
        matching.apply_unapplied(now=clock.now() + matching.UNAPPLIED_AFTER * 2)
        bank_transaction = BankTransaction.objects.get(payment_id=code["payment_id"])
        assert bank_transaction.current_bank_reference == reported["transaction_id"]
        assert bank_transaction.statement_line.result in ("attached", "new")
        assert Event.objects.filter(subject_id=code["payment_id"], type="payment.succeeded").count() == 1
        assert Transaction.objects.filter(payment_id=code["payment_id"]).count() == 1
    assert BankTransaction.objects.count() == StatementLine.objects.count() == ROUNDS
    assert set(BankNotification.objects.values_list("result", flat=True)) <= {"new", "repeat"}


def test_hundred_copies_of_a_callback_and_one_line_make_one_bank_transaction() -> None:
    shop, caller = open_shop_with_biller("Race"), SandboxBankClient(new_client())
    code, paid_at = shop.qr_code(), clock.now()
    reported = caller.notification(code, paid_at=paid_at)
    copies = [partial(SandboxBankClient(new_client()).post, reported) for _ in range(100)]
    answers = run_concurrently(*copies, partial(import_file, bot_file(credit_line(code, paid_at))))
    assert {answer.status_code for answer in answers[:-1]} == {200}
    assert (BankTransaction.objects.count(), Transaction.objects.count()) == (1, 1)
    assert BankNotification.objects.count() == 100


def test_same_file_imported_concurrently_is_stored_once() -> None:
    shop = open_shop_with_biller("Race")
    codes = [credit_line(shop.qr_code(), clock.now()) for _ in range(10)]
    body = bot_file(
        *codes, *[detail_of(number) for number in range(600)], detail(), detail(), detail(amount="?")
    )
    results: list[Any] = run_concurrently(*[partial(import_results, body) for _ in range(3)])
    counts = sum((Counter(result.result for result in reported) for reported in results), Counter[str]())
    assert (counts["new"], counts["known"], counts["unreadable"]) == (612, 2 * 612, 3)
    assert (BankTransaction.objects.count(), StatementLine.objects.count()) == (612, 613)
    assert BankNotification.objects.count() == 1
    matching.apply_unapplied(now=clock.now() + matching.UNAPPLIED_AFTER * 2)
    assert not BankTransaction.objects.not_matched().exists()


def test_concurrent_overlapping_files_do_not_deadlock() -> None:
    open_shop_with_biller("Race")
    lines = [*map(detail_of, range(500)), *(detail(amount="?", name=str(number)) for number in range(20))]
    bodies = [bot_file(*lines), bot_file(*lines[::-1]), bot_file(*lines[250:])]
    run_concurrently(*[partial(import_file, body) for body in bodies])
    assert (BankTransaction.objects.count(), BankNotification.objects.count()) == (500, 20)
