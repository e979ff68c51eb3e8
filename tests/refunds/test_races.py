"""Concurrent refunds of one payment and one balance, by threads with their own connections."""

from collections import Counter as Count
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db.models import Sum
from pytest_django import Settings

from core import clock
from ledger.models import Entry
from payments.models import Payment
from refunds import completion, services
from refunds.errors import RefundNotCancelable
from refunds.models import Refund, RefundStatus
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, new_client, open_shop
from tests.examples import examples
from tests.refunds.builders import PAYEE, REFUNDS, RefundShop, send_due_refunds
from tests.transfers.builders import Bank, pass_time
from transfers import services as transfers

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]
CLIENTS, PAYMENTS, PAID, PART = 8, examples(200), 10_000, 6_000


@pytest.fixture
def shop() -> Shop:
    return open_shop("Race")


@pytest.fixture
def refund_shop(shop: Shop) -> RefundShop:
    return RefundShop(shop, SandboxBankClient(new_client()))


def asking(shop: Shop, payment_id: str, key: str | None = None, **fields: Any) -> Callable[[], Any]:
    own = Shop(shop.merchant, shop.secret_key, new_client())
    return partial(own.post, REFUNDS, {"payment_id": payment_id} | fields, key=key)


def check_books(shop: Shop) -> None:
    """Payments, refunds, ledger and balance agree."""
    assert Entry.objects.aggregate(sum=Sum("amount"))["sum"] == 0
    for payment in Payment.objects.all():
        by_status = {
            status: sum(refund.amount for refund in payment.refunds.filter(status=status))
            for status in RefundStatus
        }
        assert payment.amount_refunding == by_status[RefundStatus.PENDING]
        assert payment.amount_refunded == by_status[RefundStatus.COMPLETED]
        assert payment.amount_refunding + payment.amount_refunded <= payment.received
    came_in = sum(
        payment.received for payment in Payment.objects.filter(status__in=["succeeded", "refunded"])
    )
    went_back = sum(refund.amount for refund in Refund.objects.filter(status=RefundStatus.COMPLETED))
    reserved = sum(refund.amount for refund in Refund.objects.filter(status=RefundStatus.PENDING))
    held = shop.get("/v1/balance").json()
    assert (held["available"], held["reserved"]) == (came_in - went_back - reserved, reserved)


def test_concurrent_refunds_never_exceed_any_payment(
    shop: Shop, refund_shop: RefundShop, settings: Settings
) -> None:
    settings.RATE_LIMIT = 0
    payments = [refund_shop.paid(PAID) for _ in range(PAYMENTS)]

    def one_client() -> list[tuple[str, int]]:
        own = Shop(shop.merchant, shop.secret_key, new_client())
        body = {"amount": PART}
        return [(each, own.post(REFUNDS, {"payment_id": each} | body).status_code) for each in payments]

    answers = [answer for client in run_concurrently(*[one_client] * CLIENTS) for answer in client]
    assert Count(answers) == {
        **{(each, 200): 1 for each in payments},
        **{(each, 400): CLIENTS - 1 for each in payments},
    }
    check_books(shop)


def test_concurrent_partial_refunds_never_exceed_the_payment(shop: Shop, refund_shop: RefundShop) -> None:
    payment_id = refund_shop.paid(PAID)
    answers = run_concurrently(*[asking(shop, payment_id, amount=3_000) for _ in range(CLIENTS)])
    assert Count(answer.status_code for answer in answers) == {200: 3, 400: 5}
    assert {answer.json()["error"]["code"] for answer in answers if answer.status_code == 400} == {
        "refund_amount_exceeded"
    }
    check_books(shop)


def test_concurrent_requests_with_one_key_create_one_refund(shop: Shop, refund_shop: RefundShop) -> None:
    payment_id = refund_shop.paid(PAID)
    answers = run_concurrently(*[asking(shop, payment_id, key="k", amount=1_000) for _ in range(CLIENTS)])
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert Refund.objects.count() == 1
    check_books(shop)


def test_concurrent_refunds_and_withdrawals_never_exceed_the_balance(
    shop: Shop, refund_shop: RefundShop
) -> None:
    payments = [refund_shop.paid(PAID) for _ in range(4)]

    def withdraw() -> Any:
        own = Shop(shop.merchant, shop.secret_key, new_client())
        return own.post("/v1/withdrawals", {"amount": PAID, "currency": "THB"} | PAYEE)

    answers = run_concurrently(*[asking(shop, each) for each in payments], *[withdraw] * 4)
    assert Count(answer.status_code for answer in answers) == {200: 4, 402: 4}
    held = shop.get("/v1/balance").json()
    assert (held["available"], held["reserved"]) == (0, 4 * PAID)
    assert Entry.objects.aggregate(sum=Sum("amount"))["sum"] == 0


def test_concurrent_cancel_and_submission_have_one_outcome(
    shop: Shop, refund_shop: RefundShop, served_by: Any
) -> None:
    bank: Bank = served_by()
    for _ in range(10):
        refund = refund_shop.refund(refund_shop.paid(PAID))

        def cancel(refund_id: str = refund["refund_id"]) -> bool:
            try:
                services.cancel(merchant=shop.merchant, refund_id=refund_id, now=clock.now())
            except RefundNotCancelable:
                return False
            return True

        def work() -> bool:
            return bool(transfers.run_due("refund", completion.TRANSFER_HANDLER, now=clock.now))

        was_canceled, _ = run_concurrently(cancel, work)
        assert was_canceled != (refund["refund_id"] in bank.sent)
        send_due_refunds(2)
        assert refund_shop.read(refund)["status"] == ("canceled" if was_canceled else "completed")
    assert len(bank.sent) == len(set(bank.sent))
    check_books(shop)


def test_concurrent_workers_complete_each_refund_once(
    shop: Shop, refund_shop: RefundShop, served_by: Any
) -> None:
    bank: Bank = served_by()
    payment_id = refund_shop.paid(PAID)
    for _ in range(10):
        refund_shop.refund(payment_id, amount=PAID // 10)

    def work() -> int:
        return transfers.run_due("refund", completion.TRANSFER_HANDLER, now=clock.now)

    for _ in range(3):
        run_concurrently(*[work] * 4)
        pass_time()
    assert len(bank.sent) == len(set(bank.sent)) == 10
    assert set(Refund.objects.values_list("status", flat=True)) == {"completed"}
    assert shop.payment(payment_id)["status"] == "refunded"
    check_books(shop)
