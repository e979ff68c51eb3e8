"""One payment, many words of the bank at once."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.test import Client

from core import clock
from payments import services as payments
from payments.models import Payment
from receipts.models import Receipt
from tests.conftest import BankCaller, new_client, open_shop
from tests.threads import at_once
from transactions.models import Transaction
from webhooks.models import Event

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("books_are_right")]


def telling(notice: dict[str, Any]) -> Callable[[], Any]:
    return partial(BankCaller(new_client()).post, notice)


def test_eight_threads_confirming_one_payment_make_one_success() -> None:
    shop, caller = open_shop("Race"), BankCaller(Client())
    for _ in range(5):
        code = shop.qr_code()
        notice = caller.notice(code)
        answers = at_once(*[telling(notice) for _ in range(8)])
        assert {answer.status_code for answer in answers} == {200}
        payment_id = code["payment_id"]
        assert shop.payment(payment_id)["status"] == "succeeded"
        assert Transaction.objects.filter(payment_id=payment_id).count() == 1
        assert Event.objects.filter(subject_id=payment_id, type="payment.succeeded").count() == 1
        assert Receipt.objects.filter(payment_id=payment_id).count() == 1


def test_eight_different_transfers_for_one_code_make_one_success_and_seven_duplicates() -> None:
    shop, caller = open_shop("Race"), BankCaller(Client())
    code = shop.qr_code()
    answers = at_once(*[telling(caller.notice(code)) for _ in range(8)])
    assert {answer.status_code for answer in answers} == {200}
    assert sorted(Receipt.objects.values_list("outcome", flat=True)) == ["applied"] + ["duplicate"] * 7
    assert Transaction.objects.count() == 1


def test_confirmation_against_expiry_never_loses_the_money() -> None:
    shop, caller = open_shop("Race"), BankCaller(Client())
    for _ in range(20):
        code = shop.qr_code(expiry_minutes=1)
        sweep = partial(payments.expire_due, now=clock.now() + timedelta(minutes=2))
        at_once(telling(caller.notice(code)), sweep)
        payment = Payment.objects.get(pk=code["payment_id"])
        assert payment.status == "succeeded"
        assert Transaction.objects.filter(payment_id=payment.id).count() == 1
