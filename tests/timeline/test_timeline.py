"""A merchant reads the timeline of a payment: complete, in order, and without other merchants' data."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from banks import TransferResult
from config.celery import app
from core import clock as our_clock
from payments import expiry_sweep
from payments.models import Payment
from qrcodes.models import QrCode
from reconciliation.models import BankNotification, BankTransaction
from refunds.tasks import run_due
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import decide
from tests.refunds.builders import RefundShop, send_due_refunds
from tests.timeline.builders import (
    CLERK,
    WHY,
    add_attempts,
    bank_inquiry,
    entries,
    key_of,
    only_entry,
    report_by_statement,
    resolve,
    timeline_page,
    types,
)
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.builders import PAYMENT_SUCCEEDED, make_endpoint
from tests.webhooks.conftest import loopback, receiver
from webhooks.delivery import dispatcher

pytestmark = pytest.mark.slow

__all__ = ["loopback", "receiver"]
Clock = Any


@pytest.fixture
def code(shop: Shop, bank: SandboxBankClient) -> dict[str, Any]:
    """A code that was paid."""
    code = shop.qr_code()
    bank.notify(code)
    return code


@pytest.fixture
def paid(code: dict[str, Any]) -> str:
    """Its payment."""
    return str(code["payment_id"])


@pytest.mark.usefixtures("loopback")
def test_timeline_shows_all_entries_in_order(
    shop: Shop, bank: SandboxBankClient, clock: Clock, receiver: Receiver, served_by: Callable[..., Any]
) -> None:
    served_by(sends=[TransferResult("succeeded", "b-1")])
    make_endpoint(shop, receiver.url())
    receiver.on("/hook", Reply(status=500), Reply())
    body = {"amount": 150_000, "currency": "THB"}
    code = shop.post("/v1/qr-codes", body, **{"X-Request-Id": "till-3.0042"}).json()
    payment_id, notification = code["payment_id"], bank.notification(code)
    steps: list[Callable[[], object]] = [
        lambda: bank_inquiry(payment_id, "nothing"),
        lambda: bank.post(notification),
        lambda: bank.post(notification),
        lambda: dispatcher.drain(now=our_clock.now),
        lambda: shop.post("/v1/refunds", {"payment_id": payment_id, "amount": 50_000}),
        lambda: app.tasks[run_due.name].apply(throw=True),
    ]
    for step in steps:
        clock.shift(7)
        step()
    clock.shift(60)
    dispatcher.drain(now=our_clock.now)
    shown = entries(shop, payment_id)
    assert [(entry["type"], entry["actor"]) for entry in shown] == [
        ("payment.pending", key_of(shop)),
        ("bank.inquiry", "clock"),
        ("bank.notification", "bank:sandbox"),
        ("payment.succeeded", "bank:sandbox"),
        ("bank.notification", "bank:sandbox"),
        ("webhook.attempt", "clock"),
        ("refund.created", key_of(shop)),
        ("refund.submitted", "clock"),
        ("refund.completed", "clock"),
        ("webhook.attempt", "clock"),
    ]
    assert shown[0]["request_id"] == "till-3.0042"
    assert shown[2]["request_id"] == shown[3]["request_id"] != shown[4]["request_id"]
    assert [entry["at"] for entry in shown] == sorted(entry["at"] for entry in shown)
    assert timeline_page(shop, payment_id)["sources"] == ["callback"]


def test_timeline_shows_dismissed_contradiction(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    notification = bank.notification(code)
    for each in (notification, notification | {"amount": "1.00"}):
        bank.post(each)
    resolve(BankNotification.objects.get(result="conflict"), "dismissed")
    assert types(shop, code["payment_id"])[-2:] == ["bank.notification", "staff.dismissed"]


def test_timeline_shows_notifications_with_result(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    notification = bank.notification(code)
    for each in (notification, notification, notification | {"amount": "1.00"}):
        bank.post(each)
    shown = [entry for entry in entries(shop, code["payment_id"]) if entry["type"] == "bank.notification"]
    assert [entry["details"]["result"] for entry in shown] == ["new", "repeat", "conflict"]
    details = shown[0]["details"]
    assert (details["source"], details["match_result"], details["amount"]) == ("callback", "applied", 150_000)
    assert details["bank_reference"] == notification["transaction_id"]
    assert shown[0]["summary"] == "The bank reports: 1,500.00 THB received, paid its payment."


def test_timeline_shows_exception_and_resolution(
    shop: Shop, bank: SandboxBankClient, code: dict[str, Any], paid: str
) -> None:
    bank.notify(code, satang=150_001)
    waiting = BankTransaction.objects.get(match_result="duplicate")
    resolve(waiting, "sent_back", payment_id=paid)
    *_, notification, action = entries(shop, paid)
    assert (notification["details"]["match_result"], notification["details"]["amount"]) == (
        "duplicate",
        150_001,
    )
    assert (action["type"], action["actor"]) == ("staff.sent_back", "staff")
    assert action["details"] == {"subject_id": waiting.pk, "payment_id": paid}
    assert timeline_page(shop, paid)["sources"] == ["callback"]


@pytest.mark.parametrize("is_swept", [False, True])
def test_timeline_shows_expiry_once(shop: Shop, clock: Clock, noon: datetime, is_swept: bool) -> None:
    payment_id = shop.qr_code(expiry_minutes=1)["payment_id"]
    clock.move_to(noon + timedelta(seconds=59))
    assert types(shop, payment_id) == ["payment.pending"]
    clock.move_to(noon + timedelta(minutes=2))
    if is_swept:
        assert expiry_sweep.expire_due(now=our_clock.now()) == 1
    shown = only_entry(shop, payment_id, "payment.expired")
    assert (shown["at"], shown["actor"]) == ("2026-11-21T05:01:00.000Z", "clock")
    assert types(shop, payment_id) == ["payment.pending", "payment.expired"]


def test_timeline_names_actor_of_early_expiry(shop: Shop) -> None:
    code = shop.qr_code()
    response = shop.post(f"/v1/qr-codes/{code['qr_code_id']}/expire")
    shown = only_entry(shop, code["payment_id"], "payment.expired")
    assert shown["actor"] == key_of(shop)
    assert shown["request_id"] == response.headers["X-Request-Id"]


@pytest.mark.parametrize("ends_it", [True, False])
def test_timeline_names_actor_of_expiry_without_expiry_events(
    shop: Shop, clock: Clock, settings: Settings, ends_it: bool
) -> None:
    settings.EXPIRY_EVENTS = False
    code = shop.qr_code(expiry_minutes=1)
    clock.shift(7)
    if ends_it:
        shop.post(f"/v1/qr-codes/{code['qr_code_id']}/expire")
    clock.shift(60)
    actor = only_entry(shop, code["payment_id"], "payment.expired")["actor"]
    assert actor == (key_of(shop) if ends_it else "clock")


def test_early_expiry_without_recorded_actor_has_no_actor(shop: Shop, clock: Clock) -> None:
    code = shop.qr_code(expiry_minutes=1)
    clock.shift(7)
    shop.post(f"/v1/qr-codes/{code['qr_code_id']}/expire")
    with connection.cursor() as cursor:  # as in the time before
        cursor.execute("SET LOCAL session_replication_role = replica")
        QrCode.objects.update(actor="", request_id="")
        cursor.execute("SET LOCAL session_replication_role = origin")
    assert only_entry(shop, code["payment_id"], "payment.expired")["actor"] is None


@pytest.mark.parametrize("tells", [True, False])
def test_late_notification_shows_expiry_before_success(
    shop: Shop, bank: SandboxBankClient, clock: Clock, noon: datetime, settings: Settings, tells: bool
) -> None:
    settings.EXPIRY_EVENTS = tells
    code = shop.qr_code(expiry_minutes=1)
    clock.move_to(noon + timedelta(minutes=2))
    bank.notify(code, paid_at=noon)
    assert types(shop, code["payment_id"]) == [
        "payment.pending",
        "payment.expired",
        "bank.notification",
        "payment.succeeded",
    ]


@pytest.mark.parametrize(("kind", "last"), [("credit", "payment.succeeded"), ("decline", "payment.failed")])
def test_finished_payment_has_no_expiry_entry(
    shop: Shop, bank: SandboxBankClient, clock: Clock, noon: datetime, kind: str, last: str
) -> None:
    code = shop.qr_code(expiry_minutes=1)
    bank.notify(code, type=kind)
    clock.move_to(noon + timedelta(days=1))
    assert types(shop, code["payment_id"]) == ["payment.pending", "bank.notification", last]


def test_statement_line_is_a_source(shop: Shop, code: dict[str, Any], paid: str) -> None:
    report_by_statement(code)
    shown = only_entry(shop, paid, "bank.statement")
    assert (shown["details"]["result"], shown["details"]["bank_transaction_id"]) == (
        "attached",
        BankTransaction.objects.get().pk,
    )
    assert timeline_page(shop, paid)["sources"] == ["callback", "statement"]


@pytest.mark.parametrize(
    ("action", "last"),
    [("fails", ["refund.submitted", "refund.failed"]), ("canceled", ["refund.canceled"])],
)
def test_timeline_shows_failed_and_canceled_refunds(
    shop: Shop, bank: SandboxBankClient, served_by: Callable[..., Any], action: str, last: list[str]
) -> None:
    served_by(sends=[TransferResult("failed", failure_code="invalid_account")])
    refund_shop = RefundShop(shop, bank)
    paid = refund_shop.paid()
    refund = refund_shop.refund(paid)
    if action == "canceled":
        refund_shop.act(refund, "cancel")
    send_due_refunds()
    assert types(shop, paid)[3:] == ["refund.created", *last]
    end = entries(shop, paid)[-1]
    assert action == "fails" or end["actor"] == key_of(shop)
    assert end["details"].get("failure_code") == ("invalid_account" if action == "fails" else None)
    assert action != "fails" or end["summary"].startswith(
        "1,500.00 THB did not arrive: the account does not exist."
    )


def test_failed_payment_says_why(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    bank.notify(code, type="decline")
    end = only_entry(shop, code["payment_id"], "payment.failed")
    assert end["summary"] == "Not paid: the bank declined the payment."
    assert end["details"]["failure_code"] == "declined_by_bank"


@pytest.mark.usefixtures("loopback")
def test_webhook_attempt_shows_next_attempt_at(
    shop: Shop, bank: SandboxBankClient, receiver: Receiver, clock: Clock
) -> None:
    endpoint = make_endpoint(shop, receiver.url(), events=[PAYMENT_SUCCEEDED])
    receiver.on("/hook", Reply(status=503), Reply())
    code = shop.qr_code()
    bank.notify(code)
    dispatcher.drain(now=our_clock.now)
    first = only_entry(shop, code["payment_id"], "webhook.attempt")["details"]
    assert (first["event"], first["webhook_id"]) == (PAYMENT_SUCCEEDED, endpoint.id)
    assert (first["http_status"], first["error"], first["number"]) == (503, "http_5xx", 1)
    assert first["next_attempt_at"] > our_clock.iso(our_clock.now())
    clock.shift(60)
    dispatcher.drain(now=our_clock.now)
    both = [entry["details"] for entry in entries(shop, code["payment_id"])][-2:]
    assert [each["next_attempt_at"] for each in both] == [None, None]
    assert [each["http_status"] for each in both] == [503, 200]


def test_timeline_page_takes_few_statements(shop: Shop, bank: SandboxBankClient) -> None:
    make_endpoint(shop, events=[PAYMENT_SUCCEEDED])
    code = shop.qr_code()
    bank.notify(code)
    payment = Payment.objects.get()
    costs = []
    for times in (3, 300):
        add_attempts(payment.pk, times)
        timeline_page(shop, payment.pk)
        with CaptureQueriesContext(
            connection,
        ) as asked_of_it:
            whole = timeline_page(shop, payment.pk, "?limit=50&offset=1")
        costs.append(len(asked_of_it))
    assert whole["total"] == 306
    assert max(costs) < 20
    assert costs[1] <= costs[0]


def test_timeline_pages_have_no_gaps(shop: Shop, bank: SandboxBankClient) -> None:
    make_endpoint(shop, events=[PAYMENT_SUCCEEDED])
    bank.notify(shop.qr_code())
    payment = Payment.objects.get()
    add_attempts(payment.pk, 7)  # in one millisecond
    whole = timeline_page(shop, payment.pk)["timeline"]
    pieces = [timeline_page(shop, payment.pk, f"?limit=3&offset={offset}") for offset in range(0, 12, 3)]
    assert [entry for piece in pieces for entry in piece["timeline"]] == whole
    assert len(whole) == 10 and {piece["total"] for piece in pieces} == {10}
    for query in ("?limit=0", "?limit=101", "?offset=-1", "?limit=x"):
        refused = shop.get(f"/v1/payments/{payment.pk}/timeline{query}").json()["error"]
        assert (refused["code"], refused["type"]) == ("invalid_parameters", "validation_error")


def test_timeline_hides_staff_names_and_account_numbers(shop: Shop, code: dict[str, Any], paid: str) -> None:
    report_by_statement(code)
    resolve(BankTransaction.objects.get(), "accepted", payment_id=paid)
    text = shop.get(f"/v1/payments/{paid}/timeline").content.decode()
    assert "xxxxxx7890" in text
    for private in ("1234567890", "Somchai", "สมชาย", "malee", CLERK.removeprefix("staff:"), WHY):
        assert private not in text


def test_attached_money_is_shown_at_both_payments(
    shop: Shop, bank: SandboxBankClient, code: dict[str, Any], paid: str
) -> None:
    other = shop.qr_code()["payment_id"]
    bank.notify(code)
    bank_transaction = BankTransaction.objects.get(match_result="duplicate")
    decide("attach", bank_transaction, payment_id=other, actor=CLERK, note=WHY)
    assert only_entry(shop, paid, "staff.attached")["details"]["subject_id"] == bank_transaction.pk
    assert types(shop, other)[1:] == ["bank.notification", "staff.attached", "payment.succeeded"]
    assert timeline_page(shop, other)["sources"] == ["callback"]


def test_timeline_of_other_merchant_is_404(other_shop: Shop, paid: str) -> None:
    response = other_shop.get(f"/Thai/v1/payments/{paid}/timeline")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "payment_not_found")
