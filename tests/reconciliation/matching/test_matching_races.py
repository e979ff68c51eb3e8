"""Concurrent reports of one payment, also during its expiry or cancellation."""

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db.models import Sum
from django.test import Client

from banks import ReportedTransaction
from banks.sandbox import SandboxBank
from core import clock
from ledger import services as ledger
from ledger.models import Entry, Journal
from payments import expiry_sweep
from payments.models import Payment
from reconciliation.matching import intake, services as matching
from reconciliation.models import BankNotification, BankTransaction, ReportSource
from tests.concurrency import run_concurrently, run_in_rounds
from tests.conftest import SandboxBankClient, Shop, new_client, open_shop
from tests.examples import examples
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file
from transactions.models import Transaction
from webhooks.models import Event

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]
LONG = timedelta(minutes=10)
Code = dict[str, Any]


@pytest.fixture(autouse=True)
def no_limits(settings: Any) -> None:
    settings.RATE_LIMIT = 0


def notification_call(notification: dict[str, Any]) -> Callable[[], Any]:
    return partial(SandboxBankClient(new_client()).post, notification)


def test_eight_threads_confirming_one_payment_make_one_success() -> None:
    shop, caller = open_shop("Race"), SandboxBankClient(Client())
    for _ in range(5):
        code = shop.qr_code()
        notification = caller.notification(code)
        answers = run_concurrently(*[notification_call(notification) for _ in range(8)])
        assert {answer.status_code for answer in answers} == {200}
        payment_id = code["payment_id"]
        assert shop.payment(payment_id)["status"] == "succeeded"
        assert Transaction.objects.filter(payment_id=payment_id).count() == 1
        assert Event.objects.filter(subject_id=payment_id, type="payment.succeeded").count() == 1
        assert BankTransaction.objects.filter(payment_id=payment_id).count() == 1


def test_eight_transfers_for_one_code_make_one_success_and_seven_duplicates() -> None:
    shop, caller = open_shop("Race"), SandboxBankClient(Client())
    code = shop.qr_code()
    answers = run_concurrently(*[notification_call(caller.notification(code)) for _ in range(8)])
    assert {answer.status_code for answer in answers} == {200}
    assert (
        sorted(BankTransaction.objects.values_list("match_result", flat=True))
        == ["applied"] + ["duplicate"] * 7
    )
    assert Transaction.objects.count() == 1


class NotifyingBank:
    """A bank that notifies about each code in turn, and stores the duration of the last call."""

    def __init__(self, codes: list[Code]) -> None:
        self._codes = codes
        self._caller = SandboxBankClient(new_client())
        self.seconds = 0.0

    def notify(self, number: int) -> None:
        began = time.perf_counter()
        assert self._caller.notify(self._codes[number]).status_code == 200
        self.seconds = time.perf_counter() - began


def create_codes(shop: Shop, count: int) -> list[Code]:
    """Create codes with different amounts that expire a minute apart."""
    minutes = int(LONG.total_seconds() // 60)
    return [shop.qr_code(amount=1_000 + number, expiry_minutes=minutes + number) for number in range(count)]


def check_that_each_succeeded_once(codes: list[Code]) -> None:
    """Assert one bank transaction, transition, journal, history row and event for each payment."""
    amounts = {code["payment_id"]: code["amount"] for code in codes}
    once = Counter(amounts.keys())
    assert (
        Counter(BankTransaction.objects.filter(match_result="applied").values_list("payment_id", flat=True))
        == once
    )
    assert BankTransaction.objects.count() == len(codes)
    assert dict(Payment.objects.filter(status="succeeded").values_list("pk", "amount")) == amounts
    posted = Journal.objects.exclude(type="confirmed")  # money that a statement line reported first
    assert dict(posted.values_list("subject_id", "amount")) == amounts
    assert posted.count() == len(codes)
    assert Counter(Transaction.objects.values_list("payment_id", flat=True)) == once
    succeeded = Event.objects.filter(type="payment.succeeded")
    assert Counter(succeeded.values_list("subject_id", flat=True)) == once


@pytest.mark.parametrize("rounds", [20, pytest.param(examples(250), marks=pytest.mark.slow)])
def test_confirmation_during_expiry_never_loses_money(rounds: int) -> None:
    shop, chance = open_shop("Race"), random.Random(rounds)
    codes = create_codes(shop, rounds)
    bank = NotifyingBank(codes)

    def expire(number: int) -> None:
        time.sleep(chance.uniform(0, 1.5) * bank.seconds)  # before, during or after the notification
        expiry_sweep.expire_due(now=datetime.fromisoformat(codes[number]["expires_at"]))

    run_in_rounds(rounds, bank.notify, expire)
    check_that_each_succeeded_once(codes)
    assert ledger.balance(shop.merchant.id).available == sum(code["amount"] for code in codes)
    expired = Counter(Event.objects.filter(type="payment.failed").values_list("subject_id", flat=True))
    assert set(expired.values()) <= {1}
    if rounds > 100:
        assert 0 < len(expired) < rounds, "each was the first at times"


def test_money_during_cancellation_is_applied_or_held() -> None:
    shop, ending = open_shop("Race"), new_client()
    codes = create_codes(shop, 40)
    bank = NotifyingBank(codes)
    ended: dict[str, int] = {}

    def end(number: int) -> None:
        code = codes[number]
        path = f"/v1/qr-codes/{code['qr_code_id']}/expire"
        answer = Shop(shop.merchant, shop.secret_key, ending).post(path)
        ended[code["payment_id"]] = answer.status_code

    run_in_rounds(len(codes), bank.notify, end)
    outcomes = dict(BankTransaction.objects.values_list("payment_id", "match_result"))
    statuses = dict(Payment.objects.values_list("pk", "status"))
    assert BankTransaction.objects.count() == len(codes)
    assert {(outcomes[each], statuses[each]) for each in outcomes} <= {
        ("applied", "succeeded"),
        ("late", "expired"),
    }
    assert all(statuses[each] == "succeeded" for each, status in ended.items() if status == 400)
    held = Entry.objects.filter(account_id="suspense:sandbox").aggregate(Sum("amount", default=0))[
        "amount__sum"
    ]
    assert ledger.balance(shop.merchant.id).available + held == sum(code["amount"] for code in codes)


def test_hundred_concurrent_copies_of_a_notification_make_one_payment() -> None:
    shop, caller = open_shop("Race"), SandboxBankClient(new_client())
    codes = create_codes(shop, examples(30))
    notifications = [json.dumps(caller.notification(code)).encode() for code in codes]

    def copy() -> Callable[[int], None]:
        caller = SandboxBankClient(new_client())

        def notify(number: int) -> None:
            """Notify like a bank: send it again after a 503, which means that a lock took too long."""
            while (status := caller.post(notifications[number]).status_code) == 503:
                continue
            assert status == 200

        return notify

    run_in_rounds(len(codes), *[copy() for _ in range(100)])
    check_that_each_succeeded_once(codes)
    kept = Counter(BankNotification.objects.values_list("bank_transaction__payment_id", "result"))
    for code in codes:
        assert kept.pop((code["payment_id"], "new")) == 1
        assert kept.pop((code["payment_id"], "repeat")) >= 99
    assert not kept


def test_concurrent_reports_of_three_sources_during_expiry_make_one_payment() -> None:
    shop, caller, asked = open_shop("Race"), SandboxBankClient(new_client()), SandboxBank("x")
    codes = create_codes(shop, 40)
    paid_at = clock.now()
    bodies = [json.dumps(caller.notification(code, paid_at=paid_at)).encode() for code in codes]

    def callback(number: int) -> None:
        assert caller.post(bodies[number]).status_code == 200

    def answer(number: int) -> None:
        notification, now = asked.parse_notification(bodies[number]), clock.now()
        assert isinstance(notification, ReportedTransaction)
        bank_transaction = intake.receive(
            bank="sandbox",
            body=bodies[number],
            notification=notification,
            now=now,
            source=ReportSource.INQUIRY,
        )
        matching.try_apply(bank_transaction_id=bank_transaction.id, now=clock.now())

    def line(number: int) -> None:
        import_file(bot_file(credit_line(codes[number], paid_at)))

    def expire(number: int) -> None:
        expiry_sweep.expire_due(now=datetime.fromisoformat(codes[number]["expires_at"]))

    run_in_rounds(len(codes), callback, answer, line, expire)
    matching.apply_unapplied(now=clock.now() + matching.UNAPPLIED_AFTER * 2)
    check_that_each_succeeded_once(codes)
    assert not BankTransaction.objects.unconfirmed().exists()
    assert shop.get("/v1/balance").json()["available"] == sum(code["amount"] for code in codes)
    assert BankTransaction.objects.filter(statement_line__isnull=False).count() == len(codes)
