"""Refunds, returns and their transfers in the timeline."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.db import DatabaseError, connection, transaction
from django.test import Client

from banks import TransferResult
from config.celery import app
from core import clock as our_clock
from reconciliation.exceptions import contradictions
from reconciliation.matching.order_completion import HANDLERS
from reconciliation.models import BankNotification, BankTransaction
from reconciliation.tasks import run_returns
from refunds.tasks import run_due
from tests.conftest import SandboxBankClient, Shop
from tests.context import acting_as
from tests.payments.conftest import acquirer, card_shop
from tests.reconciliation.builders import Seller, decide
from tests.reconciliation.matching.test_order_notifications import notification_of
from tests.refunds.builders import NOBODY, PAYEE, RefundShop, send_due_refunds
from tests.timeline.builders import CLERK, WHY, entries, key_of, last_entries, only_entry, resolve, types
from transfers import services as transfers
from transfers.models import TransferContradiction, TransferEvent

pytestmark = pytest.mark.slow
__all__ = ["acquirer", "card_shop"]


def test_payment_refunded_entry_comes_with_last_refund(
    shop: Shop, bank: SandboxBankClient, clock: Any, served_by: Callable[..., Any]
) -> None:
    served_by(sends=[TransferResult("succeeded", "b-1"), TransferResult("succeeded", "b-2")])
    refund_shop = RefundShop(shop, bank)
    paid = refund_shop.paid()
    for satang in (50_000, 100_000):
        assert "payment.refunded" not in types(shop, paid)
        clock.shift(60)
        last = refund_shop.refund(paid, amount=satang)
        send_due_refunds()
    shown = only_entry(shop, paid, "payment.refunded")
    assert shown["details"] == {"refund_id": last["refund_id"]}
    assert shown["summary"] == "Refunded: all of 1,500.00 THB went back to the payer."
    assert types(shop, paid)[-2:] == ["refund.completed", "payment.refunded"]


def test_reversal_refunds_payment_with_bank_as_actor(shop: Shop, bank: SandboxBankClient) -> None:
    seller = Seller(shop, bank)
    credit = seller.sale()
    seller.reverse(credit)
    assert only_entry(shop, str(credit.payment_id), "payment.refunded")["actor"] == "bank:sandbox"


def test_refund_with_account_has_no_destination_entry(shop: Shop, bank: SandboxBankClient) -> None:
    refund_shop = RefundShop(shop, bank)
    paid = refund_shop.paid()
    refund_shop.refund(paid)
    assert "refund.addressed" not in types(shop, paid)


def test_timeline_shows_a_return_canceled_by_a_reversal(
    shop: Shop, bank: SandboxBankClient, clock: Any
) -> None:
    seller = Seller(shop, bank)
    bank_transaction = seller.late()
    decide("send_back", bank_transaction)
    clock.shift(60)
    seller.reverse(bank_transaction)
    payment_id = str(bank_transaction.payment_id)
    assert types(shop, payment_id)[-2:] == ["bank.notification", "return.canceled"]
    assert only_entry(shop, payment_id, "return.canceled")["actor"] == "bank:sandbox"


Serving = Callable[..., Any]
BY = {"actor": CLERK, "note": WHY}


def run(task: Any, clock: Any, *, after: int = 60) -> str:
    """The task, so many seconds later; returns its id."""
    clock.shift(after)
    return str(app.tasks[task.name].apply(throw=True).id)


def test_refund_submissions_and_inquiries_have_task_ids(
    shop: Shop, bank: SandboxBankClient, clock: Any, served_by: Serving
) -> None:
    served_by(
        sends=[TransferResult("not_sent"), TransferResult("processing")],
        inquiries=[TransferResult("unknown"), TransferResult("succeeded", "b-1")],
    )
    refund_shop = RefundShop(shop, bank)
    paid = refund_shop.paid()
    refund_shop.refund(paid, amount=50_000)
    tasks = [run(run_due, clock, after=3600) for _ in range(4)]
    assert last_entries(shop, paid, 6) == [
        ("refund.submitted", "clock", tasks[0]),
        ("refund.not_sent", "clock", tasks[0]),
        ("refund.submitted", "clock", tasks[1]),
        ("refund.inquiry", "clock", tasks[2]),
        ("refund.inquiry", "clock", tasks[3]),
        ("refund.completed", "clock", tasks[3]),
    ]
    output = [each["details"]["answer"] for each in entries(shop, paid) if each["type"] == "refund.inquiry"]
    assert output == ["unknown", "succeeded"]


def test_return_submission_and_inquiry_have_task_ids(
    shop: Shop, paid_twice: str, clock: Any, served_by: Serving
) -> None:
    served_by(
        sends=[TransferResult("processing")],
        inquiries=[TransferResult("failed", failure_code="account_closed")],
    )
    decide("send_back", BankTransaction.objects.get(match_result="duplicate").pk, **BY)
    tasks = [run(run_returns, clock, after=3600) for _ in range(2)]
    assert last_entries(shop, paid_twice, 3) == [
        ("return.submitted", "clock", tasks[0]),
        ("return.inquiry", "clock", tasks[1]),
        ("return.failed", "clock", tasks[1]),
    ]


def test_manual_return_has_staff_as_actor(admin_client: Client, shop: Shop, paid_twice: str) -> None:
    waiting = BankTransaction.objects.get(match_result="duplicate")
    decide("record_manual_return", waiting.pk, bank_reference="counter 7", **BY)
    assert only_entry(shop, paid_twice, "return.completed")["actor"] == "staff"
    page = admin_client.get(f"/admin/payments/payment/{quote(paid_twice)}/change/").content.decode()
    assert page.count(CLERK) == 2


def test_returned_refund_has_bank_as_actor(
    admin_client: Client, shop: Shop, bank: SandboxBankClient, clock: Any, served_by: Serving
) -> None:
    served_by(sends=[TransferResult("succeeded", "b-1")])
    refund_shop = RefundShop(shop, bank)
    paid = refund_shop.paid()
    refund_id = refund_shop.refund(paid)["refund_id"]
    run(run_due, clock)
    clock.shift(60)
    response = bank.post(notification_of(refund_id, "returned"))
    request_id = response.headers["X-Request-Id"]
    assert last_entries(shop, paid, 2) == [
        ("bank.notification", "bank:sandbox", request_id),
        ("refund.returned", "bank:sandbox", request_id),
    ]
    case = admin_client.get(
        f"/admin/reconciliation/reconciliationexception/{quote(refund_id)}/change/"
    ).content.decode()
    assert "&quot;status&quot;: &quot;returned&quot;" in case


def test_refund_destination_entry_has_actor(shop: Shop, bank: SandboxBankClient, clock: Any) -> None:
    refund_shop = RefundShop(shop, bank)
    paid = refund_shop.paid(payer=NOBODY)
    refund = refund_shop.refund(paid)
    assert types(shop, paid)[-1] == "refund.created"
    clock.shift(60)
    request_id = refund_shop.act(refund, "destination", PAYEE).headers["X-Request-Id"]
    assert last_entries(shop, paid, 1) == [("refund.addressed", key_of(shop), request_id)]


def test_transfer_page_shows_each_event(
    admin_client: Client, shop: Shop, bank: SandboxBankClient, clock: Any, served_by: Serving
) -> None:
    served_by(sends=[TransferResult("processing")], inquiries=[TransferResult("unknown")])
    refund_shop = RefundShop(shop, bank)
    refund_id = refund_shop.refund(refund_shop.paid())["refund_id"]
    for _ in range(2):
        run(run_due, clock, after=3600)
    page = admin_client.get(f"/admin/transfers/transfer/{refund_id}/change/").content.decode()
    assert "2026-11-21 13:00:00 Submitted  task:refunds.run_due" in page
    assert "2026-11-21 14:00:00 Inquiry no usable answer task:refunds.run_due" in page


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE transfers_transferevent SET actor = ''",
        "DELETE FROM transfers_transferevent",
        "TRUNCATE transfers_transferevent",
    ],
)
def test_transfer_events_are_append_only(shop: Shop, bank: SandboxBankClient, attack: str) -> None:
    refund_shop = RefundShop(shop, bank)
    refund_shop.refund(refund_shop.paid())
    assert TransferEvent.objects.count() == 1
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
            cursor.execute(attack)


def test_bank_notifications_about_refund_are_shown(
    admin_client: Client, shop: Shop, bank: SandboxBankClient, served_by: Serving
) -> None:
    served_by(sends=[TransferResult("processing")])
    refund_shop = RefundShop(shop, bank)
    paid = refund_shop.paid()
    refund_id = refund_shop.refund(paid)["refund_id"]
    send_due_refunds()
    for status in ("succeeded", "succeeded", "failed"):
        bank.post(notification_of(refund_id, status))
    shown = [each for each in entries(shop, paid) if {"result", "refund_id"} <= each["details"].keys()]
    assert [each["details"]["result"] for each in shown] == ["new", "repeat", "conflict"]
    assert {(each["type"], each["actor"]) for each in shown} == {("bank.notification", "bank:sandbox")}
    assert {each["details"]["refund_id"] for each in shown} == {refund_id}
    assert shown[0]["request_id"] == only_entry(shop, paid, "refund.completed")["request_id"]
    first = BankNotification.objects.get(order_id=refund_id, result="new")
    order = admin_client.get(f"/admin/transfers/transfer/{refund_id}/change/").content.decode()
    assert f">{first}</a> (new)" in order and "(conflict)" in order
    notification = admin_client.get(
        f"/admin/reconciliation/banknotification/{first.pk}/change/"
    ).content.decode()
    assert f"/admin/transfers/transfer/{quote(refund_id)}/change/" in notification
    assert first.request_id in notification


def test_return_notification_is_shown_before_the_status_change(
    shop: Shop, bank: SandboxBankClient, paid_twice: str, clock: Any, served_by: Serving
) -> None:
    served_by(sends=[TransferResult("processing")])
    waiting = BankTransaction.objects.get(match_result="duplicate")
    made = decide("send_back", waiting.pk, **BY)
    transfers.run_due("return", HANDLERS["rtn"], now=our_clock.now)
    clock.shift(7)
    bank.post(notification_of(made.id))
    *_, sent, notification, completed = entries(shop, paid_twice)
    assert [each["type"] for each in (sent, notification, completed)] == [
        "return.submitted",
        "bank.notification",
        "return.completed",
    ]
    assert notification["details"]["return_id"] == made.id


def test_dismissed_refund_contradiction_is_shown(
    shop: Shop, bank: SandboxBankClient, served_by: Serving
) -> None:
    served_by(sends=[TransferResult("succeeded", "b-1")])
    refund_shop = RefundShop(shop, bank)
    paid = refund_shop.paid()
    refund_id = refund_shop.refund(paid)["refund_id"]
    send_due_refunds()
    bank.post(notification_of(refund_id, "failed"))
    resolve(BankNotification.objects.get(result="conflict"), "dismissed")
    assert types(shop, paid)[-2:] == ["bank.notification", "staff.dismissed"]


def test_refund_contradiction_and_resolution_are_shown(
    shop: Shop, bank: SandboxBankClient, clock: Any, served_by: Serving
) -> None:
    served_by(sends=[TransferResult("succeeded", "b-1")])
    refund_shop = RefundShop(shop, bank)
    paid = refund_shop.paid()
    refund_id = refund_shop.refund(paid)["refund_id"]
    send_due_refunds()
    clock.shift(1)
    transfers.complete(refund_id, TransferResult("failed", "b-1"), HANDLERS["ref"], now=our_clock.now())
    found = TransferContradiction.objects.get()
    with acting_as(CLERK):
        contradictions.mark_returned(found.id, note=WHY, now=our_clock.now() + timedelta(seconds=1))
    shown = only_entry(shop, paid, "bank.contradiction")
    assert shown["details"] == {
        "subject_id": refund_id,
        "amount": 150_000,
        "state": "succeeded",
        "answer": "failed",
    }
    assert types(shop, paid)[-3:] == ["bank.contradiction", "staff.booked_returned", "refund.returned"]
    assert only_entry(shop, paid, "staff.booked_returned")["actor"] == "staff"


@pytest.mark.parametrize("order_id", ["wd_000000000000000000000000000", "chrg_17"])
def test_notification_of_unknown_order_has_no_order_id(
    shop: Shop, bank: SandboxBankClient, order_id: str
) -> None:
    bank.post(notification_of(order_id))
    notification = BankNotification.objects.get()
    assert (notification.result, notification.order_id) == ("conflict", None)
