"""A suspended merchant makes no codes and sends no money. What arrives is credited. One act lifts it."""

import re
from collections.abc import Callable

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from audit_trail.models import AuditRecord
from banks import TransferResult
from core import clock
from merchants import page_settings, services
from merchants.errors import MerchantSuspended
from merchants.models import Merchant
from payments.models import Payment, PaymentException
from qrcodes import services as qr_codes
from reconciliation.exceptions import merchant_decisions
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop
from tests.error_messages import check_error
from tests.factories import PaymentFactory
from tests.reconciliation.builders import staff_client
from tests.staff_acts import REASON, acts_of_staff, run_act, send_act
from tests.transfers.builders import Bank, pass_time
from tests.transfers.conftest import served_by
from tests.withdrawals.builders import (
    fetch_withdrawal,
    fund,
    send_due_withdrawals,
    withdrawal_request,
    withdrawn,
)
from tests.withdrawals.payout_builders import bangkok, nights, run_at, schedule
from transfers import services as transfers
from transfers.models import Transfer
from withdrawals import services as withdrawals
from withdrawals.models import Withdrawal

__all__ = ["served_by"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def malee(db: None) -> Client:
    return staff_client("malee", "view_merchant", "suspend_merchant")


def suspend(shop: Shop) -> None:
    services.suspend(shop.merchant.pk, now=clock.now())


def lift(shop: Shop) -> None:
    services.lift_suspension(shop.merchant.pk)


def refused(answer: object) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]  # type: ignore[attr-defined]


def test_staff_suspend_a_merchant_and_lift_it_with_a_record_of_each(malee: Client, shop: Shop) -> None:
    run_act(malee, Merchant, shop.merchant.pk, "suspend")
    assert refused(shop.get("/v1/payments")) == (403, "merchant_suspended")
    assert (
        "It is suspended."
        in malee.get(f"/admin/merchants/merchant/{shop.merchant.pk}/change/").content.decode()
    )
    run_act(malee, Merchant, shop.merchant.pk, "lift-suspension")
    assert shop.get("/v1/payments").status_code == 200
    records = acts_of_staff().values_list("act", "reason", "object_id")
    key = shop.merchant.pk
    assert list(records) == [("merchant_suspended", REASON, key), ("suspension_lifted", REASON, key)]


def test_staff_without_the_permission_cannot_suspend(shop: Shop) -> None:
    other = staff_client("other", "view_merchant", "rename_merchant")
    assert send_act(other, Merchant, shop.merchant.pk, "suspend").status_code == 403
    assert shop.get("/v1/payments").status_code == 200


def test_second_suspension_changes_nothing(shop: Shop) -> None:
    suspend(shop)
    since = Merchant.objects.get(pk=shop.merchant.pk).suspended_at
    suspend(shop)
    lift(shop)
    lift(shop)
    assert since is not None
    assert AuditRecord.objects.filter(object_id=shop.merchant.pk, act__contains="suspen").count() == 2


def test_each_request_of_a_suspended_merchant_is_refused(shop: Shop, other_shop: Shop) -> None:
    suspend(shop)
    for answer in (
        shop.post("/v1/qr-codes", {"amount": 100_000, "currency": "THB"}),
        shop.post("/v1/payments", {"token_id": "tok_test_visa", "amount": 100_000, "currency": "THB"}),
        shop.post("/v1/withdrawals", withdrawal_request()),
        shop.post("/v1/webhooks", {}),
        shop.get("/v1/balance"),
    ):
        assert answer.status_code == 403
        check_error(answer.json(), "merchant_suspended")
    assert not Payment.objects.exists()
    assert other_shop.get("/v1/payments").status_code == 200


def test_services_refuse_what_no_key_asks_for(shop: Shop) -> None:
    suspend(shop)
    shop.merchant.refresh_from_db()
    with pytest.raises(MerchantSuspended):
        qr_codes.generate(
            merchant=shop.merchant, subscriptions=[], now=clock.now(), amount=100, expiry_minutes=15
        )
    with pytest.raises(MerchantSuspended):
        withdrawals.create(
            merchant=shop.merchant, now=clock.now(), **withdrawal_request(), reference=None, metadata=None
        )


def test_database_refuses_payments_and_withdrawals_of_a_suspended_merchant(
    shop: Shop, bank: SandboxBankClient
) -> None:
    fund(shop, bank)
    made = withdrawn(shop)
    suspend(shop)
    with pytest.raises(IntegrityError, match="is suspended"), transaction.atomic():
        PaymentFactory(merchant=shop.merchant)
    copy = Withdrawal.objects.get(pk=made["withdrawal_id"])
    copy.pk = "wd_other"
    with pytest.raises(IntegrityError, match="is suspended"), transaction.atomic():
        copy.save(force_insert=True)


@pytest.mark.django_db(transaction=True)
def test_request_whose_merchant_is_suspended_meanwhile_gets_403(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspend(shop)
    monkeypatch.setattr(Merchant, "check_open", lambda self: None)  # as if the key was read before
    answer = shop.post("/v1/qr-codes", {"amount": 100_000, "currency": "THB"})
    assert refused(answer) == (403, "merchant_suspended")


def test_money_that_arrives_is_credited(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code(amount=150_000)
    suspend(shop)
    assert bank.notify(code).status_code == 200
    assert Payment.objects.get().status == "succeeded"
    lift(shop)
    assert shop.get("/v1/balance").json()["available"] == 150_000


def test_open_payment_page_says_that_the_shop_takes_no_payments(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    path = f"/pay/{code['qr_code_id']}"

    def heading() -> str:
        page = Client().get(f"{path}?lang=en").content.decode()
        assert ("/image?format=svg" in page) == ("Scan to pay" in page)
        found = re.search("<h1[^>]*>(.+?)</h1>", page)
        assert found is not None
        return found[1]

    suspend(shop)
    assert heading() == "The shop takes no payments now"
    assert Client().get(f"{path}/state").json() == {"state": "suspended"}
    assert Client().get(f"{path}/card.png").status_code == 410
    picture = f"/Thai/qr-codes/{code['qr_code_id']}/image"
    for query, media_type in (("", "image/png"), ("?format=svg", "image/svg+xml")):
        drawn = Client().get(picture + query)
        assert (drawn.status_code, drawn["Content-Type"]) == (410, media_type)
    assert b"EXPIRED" in drawn.content
    explained = Client().get(picture, headers={"Accept": "application/json"})
    assert "its shop takes no payments now" in explained.json()["error"]["message"]
    lift(shop)
    assert Client().get(picture).status_code == 200
    assert heading() == "Scan to pay"
    suspend(shop)
    bank.notify(code)
    assert heading() == "Paid"


def test_order_of_a_suspended_merchant_waits_and_is_sent_after_the_suspension(
    shop: Shop, bank: SandboxBankClient, served_by: Callable[..., Bank]
) -> None:
    bank_of_shop = served_by(sends=[TransferResult("succeeded", "b-1")])
    fund(shop, bank)
    made = withdrawn(shop)
    suspend(shop)
    for _ in range(2):
        pass_time()
        send_due_withdrawals()
    assert (Transfer.objects.get().state, len(bank_of_shop.sent)) == ("queued", 0)
    lift(shop)
    pass_time()
    send_due_withdrawals()
    assert len(bank_of_shop.sent) == 1
    assert fetch_withdrawal(shop, made)["status"] == "succeeded"


def test_nightly_payout_of_a_suspended_merchant_is_skipped(shop: Shop, bank: SandboxBankClient) -> None:
    fund(shop, bank)
    schedule(shop, now=bangkok("12:00"))
    suspend(shop)
    run_at(bangkok("21:00"))
    assert nights() == [("2026-11-21", 0, "merchant_suspended")]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_no_order_is_submitted_after_the_suspension(shop: Shop, bank: SandboxBankClient) -> None:
    """Both at once: either the order was submitted before the suspension, or it waits."""
    fund(shop, bank, 1_000_000)
    for _ in range(8):
        lift(shop)
        order_id = withdrawn(shop, amount=10_000)["withdrawal_id"]
        was_sent, _ = run_concurrently(
            lambda order_id=order_id: transfers.submit(  # type: ignore[misc]
                order_id, withdrawals.TRANSFER_HANDLER, now=clock.now()
            ),
            lambda: suspend(shop),
        )
        state = Transfer.objects.get(pk=order_id).state
        assert state == ("submitted" if was_sent else "queued")
        assert transfers.submit(order_id, withdrawals.TRANSFER_HANDLER, now=clock.now()) is False


def test_page_of_a_payment_link_says_that_the_shop_takes_no_payments(shop: Shop) -> None:
    link = shop.post("/v1/payment-links", {"amount": 100_000, "currency": "THB"}).json()
    suspend(shop)
    path = "/" + link["url"].split("/", 3)[3]
    for method in ("get", "post"):
        answer = getattr(Client(), method)(f"{path}?lang=en")
        assert answer.status_code == 403
        assert "The shop cannot take this payment now" in answer.content.decode()
    assert not Payment.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_payer_whose_shop_is_suspended_meanwhile_sees_no_fault(
    shop: Shop, bank: SandboxBankClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    page_settings.change(shop.merchant.pk, now=clock.now(), offers_new_code=True)
    link = shop.post("/v1/payment-links", {"amount": 100_000, "currency": "THB"}).json()
    code = shop.qr_code()
    bank.notify(code, type="decline")
    suspend(shop)
    monkeypatch.setattr(Merchant, "check_open", lambda self: None)  # as if the merchant was read before
    monkeypatch.setattr(qr_codes, "is_renewable", lambda payment, now: True)
    path = "/" + link["url"].split("/", 3)[3]
    assert Client().post(f"{path}?lang=en").status_code == 403
    assert Client().post(f"/pay/{code['qr_code_id']}/new-code").status_code == 303
    assert Payment.objects.count() == 1


def test_people_of_a_suspended_merchant_return_no_money(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code(amount=100_000)
    bank.notify(code, satang=90_000)
    exception = PaymentException.objects.get()
    suspend(shop)
    with pytest.raises(MerchantSuspended):
        merchant_decisions.send_back(exception, part="all", now=clock.now())
    with pytest.raises(MerchantSuspended):
        merchant_decisions.accept(exception, now=clock.now())
