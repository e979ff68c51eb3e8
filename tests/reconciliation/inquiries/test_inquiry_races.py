"""Inquiries, callbacks, expiry and crashes at the same time: a payment succeeds once."""

import json
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from banks import InquiryResult
from core import clock
from payments import expiry_sweep
from payments.models import Payment
from reconciliation.matching import intake, services as matching
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    Inquiry,
    InquiryAnswer,
    ReportSource,
    ScanCursor,
)
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, new_client, open_shop
from tests.examples import examples
from tests.reconciliation.inquiries.builders import (
    NOTHING,
    Answering,
    Killed,
    end_leases,
    found,
    outcomes,
    sweep,
)
from transactions.models import Transaction
from webhooks.models import Event

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop("Race")


@pytest.fixture
def caller() -> SandboxBankClient:
    return SandboxBankClient(new_client())


def telling(notification: dict[str, Any]) -> Callable[[], Any]:
    return partial(SandboxBankClient(new_client()).post, notification)


def succeeded_once(payment_id: str) -> bool:
    payment = Payment.objects.get(pk=payment_id)
    counts = (
        BankTransaction.objects.filter(payment=payment).count(),
        Transaction.objects.filter(payment_id=payment_id).count(),
        Event.objects.filter(subject_id=payment_id, type="payment.succeeded").count(),
    )
    return payment.status == "succeeded" and counts == (1, 1, 1)


def test_concurrent_workers_make_each_inquiry_once(shop: Shop, served_by: Answering) -> None:
    fake_bank = served_by()
    for _ in range(20):
        shop.qr_code()
    run_concurrently(*[sweep] * 8)
    actual = (len(fake_bank.references), len(set(fake_bank.references)), InquiryAnswer.objects.count())
    assert actual == (20, 20, 20)


def test_concurrent_callback_and_inquiry_are_one_bank_transaction(
    shop: Shop, caller: SandboxBankClient, served_by: Answering
) -> None:
    for _ in range(examples(50)):
        code = shop.qr_code()
        notification = caller.notification(code)
        served_by(found(notification))
        run_concurrently(telling(notification), sweep)
        assert succeeded_once(code["payment_id"])
        Inquiry.objects.update(due_at=None)


def test_inquiry_during_expiry_never_loses_money(
    shop: Shop, caller: SandboxBankClient, served_by: Answering
) -> None:
    for _ in range(20):
        now = clock.now()
        ScanCursor.objects.update(created_before=now, scanned_until=now)  # the run before was in the future
        code = shop.qr_code(expiry_minutes=1)
        served_by(found(caller.notification(code)))
        expire = partial(expiry_sweep.expire_due, now=clock.now() + timedelta(seconds=61))
        run_concurrently(lambda: sweep(61), expire)
        assert succeeded_once(code["payment_id"])


def test_payment_paid_during_the_inquiry_is_not_inquired_again(
    shop: Shop, caller: SandboxBankClient, served_by: Answering
) -> None:
    code = shop.qr_code()
    is_asked, may_answer = threading.Event(), threading.Event()

    def answer() -> InquiryResult:
        is_asked.set()
        may_answer.wait(60)
        return NOTHING

    def pay() -> int:
        is_asked.wait(60)
        status = caller.notify(code).status_code
        may_answer.set()
        return int(status)

    served_by(answer)
    assert run_concurrently(sweep, pay) == [1, 200]
    assert succeeded_once(code["payment_id"])
    assert Inquiry.objects.get().due_at is None


@pytest.mark.parametrize(
    "point",
    [
        "reconciliation.matching.intake.receive",
        "reconciliation.matching.services.apply",
        "reconciliation.inquiries.services._record_answer",
    ],
)
def test_crash_after_the_inquiry_answer_is_repaired_after_the_lease(
    shop: Shop, caller: SandboxBankClient, served_by: Answering, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    code = shop.qr_code()
    fake_bank = served_by(found(caller.notification(code)))
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(point, _dies)
        sweep()
    assert (sweep(), outcomes()) == (0, []), "the lease holds"
    end_leases()
    sweep()
    matching.apply_unapplied(now=clock.now() + timedelta(minutes=1))
    assert succeeded_once(code["payment_id"])
    assert len(fake_bank.questions) == (1 if point.endswith("_record_answer") else 2)


def test_crash_during_the_inquiry_call_is_repaired_after_the_lease(
    shop: Shop, caller: SandboxBankClient, served_by: Answering
) -> None:
    code = shop.qr_code()
    served_by(Killed(), found(caller.notification(code)))
    with pytest.raises(Killed):
        sweep()
    end_leases()
    assert sweep() == 1
    assert succeeded_once(code["payment_id"])


def test_contradicting_callback_and_inquiry_are_an_exception(
    shop: Shop, caller: SandboxBankClient, served_by: Answering
) -> None:
    notification = caller.notification(shop.qr_code(), satang=1)
    served_by(found(notification | {"amount": "2.00"}))
    caller.post(notification)
    sweep()
    assert BankTransaction.objects.count() == 1
    assert sorted(BankNotification.objects.values_list("source", "result")) == [
        ("callback", "new"),
        ("inquiry", "conflict"),
    ]


def test_eight_concurrent_reports_of_one_payment_make_one_success(
    shop: Shop, caller: SandboxBankClient, served_by: Answering
) -> None:
    code = shop.qr_code()
    notification = caller.notification(code)
    reports = found(notification)
    accept = partial(
        intake.receive,
        bank="sandbox",
        body=json.dumps(notification).encode(),
        notification=reports.transactions[0],
        now=clock.now(),
        source=ReportSource.INQUIRY,
    )
    served_by(reports)
    run_concurrently(*[accept] * 3, *[telling(notification)] * 3, *[sweep] * 2)
    assert succeeded_once(code["payment_id"])


def _dies(*args: object, **how: object) -> None:
    raise Killed
