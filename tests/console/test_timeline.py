"""A merchant reads all that happened to a payment: complete, in order, and of nobody else."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from banks import Word
from config.celery import app
from core import clock as our_clock
from payments import services as payments
from payments.models import Payment
from qrcodes.models import QrCode
from receipts import acts
from receipts.models import Notice, Receipt
from refunds.tasks import run_due
from tests.conftest import BankCaller, Shop
from tests.console.timeline_cast import (
    CLERK,
    WHY,
    asked,
    attempted,
    decided,
    entries,
    named_in_a_statement,
    only,
    page,
    types,
)
from tests.receiver import Receiver, Reply
from tests.refunds.cast import Counter, carry_out
from tests.webhooks.cast import PAID, make_endpoint
from tests.webhooks.conftest import loopback, receiver
from webhooks import deliveries

__all__ = ["loopback", "receiver"]
Clock = Any


@pytest.fixture
def code(shop: Shop, bank: BankCaller) -> dict[str, Any]:
    """A code that was paid."""
    code = shop.qr_code()
    bank.tell(code)
    return code


@pytest.fixture
def paid(code: dict[str, Any]) -> str:
    """Its payment."""
    return str(code["payment_id"])


def key_of(shop: Shop) -> str:
    return f"key:{shop.merchant.keys.get().public_id}"


@pytest.mark.usefixtures("loopback")
def test_a_life_is_told_from_first_to_last(
    shop: Shop, bank: BankCaller, clock: Clock, receiver: Receiver, served_by: Callable[..., Any]
) -> None:
    served_by(sends=[Word("succeeded", "b-1")])
    make_endpoint(shop, receiver.url())
    receiver.on("/hook", Reply(status=500), Reply())
    body = {"amount": 150_000, "currency": "THB"}
    code = shop.post("/v1/qr-codes", body, **{"X-Request-Id": "till-3.0042"}).json()
    payment_id, notice = code["payment_id"], bank.notice(code)
    steps: list[Callable[[], object]] = [
        lambda: asked(payment_id, "nothing"),
        lambda: bank.post(notice),
        lambda: bank.post(notice),
        lambda: deliveries.drain(now=our_clock.now),
        lambda: shop.post("/v1/refunds", {"payment_id": payment_id, "amount": 50_000}),
        lambda: app.tasks[run_due.name].apply(throw=True),
    ]
    for step in steps:
        clock.shift(7)
        step()
    clock.shift(60)
    deliveries.drain(now=our_clock.now)
    told = entries(shop, payment_id)
    assert [(entry["type"], entry["actor"]) for entry in told] == [
        ("payment.pending", key_of(shop)),
        ("bank.inquiry", "clock"),
        ("bank.notice", "bank:sandbox"),
        ("payment.succeeded", "bank:sandbox"),
        ("bank.notice", "bank:sandbox"),
        ("webhook.attempt", "clock"),
        ("refund.created", key_of(shop)),
        ("refund.told", "clock"),
        ("refund.completed", "clock"),
        ("webhook.attempt", "clock"),
    ]
    assert told[0]["request_id"] == "till-3.0042"
    assert told[2]["request_id"] == told[3]["request_id"] != told[4]["request_id"]
    assert [entry["at"] for entry in told] == sorted(entry["at"] for entry in told)
    assert page(shop, payment_id)["witnesses"] == ["callback"]


def test_a_contradiction_of_the_bank_is_dismissed_in_sight(shop: Shop, bank: BankCaller) -> None:
    code = shop.qr_code()
    notice = bank.notice(code)
    for each in (notice, notice | {"amount": "1.00"}):
        bank.post(each)
    decided(Notice.objects.get(verdict="conflict"), "dismissed")
    assert types(shop, code["payment_id"])[-2:] == ["bank.notice", "staff.dismissed"]


def test_the_bank_is_quoted_with_what_came_of_it(shop: Shop, bank: BankCaller) -> None:
    code = shop.qr_code()
    notice = bank.notice(code)
    for each in (notice, notice, notice | {"amount": "1.00"}):
        bank.post(each)
    told = [entry for entry in entries(shop, code["payment_id"]) if entry["type"] == "bank.notice"]
    assert [entry["details"]["verdict"] for entry in told] == ["new", "repeat", "conflict"]
    details = told[0]["details"]
    assert (details["source"], details["outcome"], details["amount"]) == ("callback", "applied", 150_000)
    assert details["bank_transaction_id"] == notice["transaction_id"]
    assert told[0]["summary"] == "The bank says: 1,500.00 THB came in, it paid for this."


def test_money_that_does_not_fit_is_shown_with_what_was_decided(
    shop: Shop, bank: BankCaller, code: dict[str, Any], paid: str
) -> None:
    bank.tell(code, satang=150_001)
    waiting = Receipt.objects.get(outcome="duplicate")
    decided(waiting, "sent_back", payment_id=paid)
    *_, notice, act = entries(shop, paid)
    assert (notice["details"]["outcome"], notice["details"]["amount"]) == ("duplicate", 150_001)
    assert (act["type"], act["actor"]) == ("staff.sent_back", "staff")
    assert act["details"] == {"subject_id": waiting.pk, "payment_id": paid}
    assert page(shop, paid)["witnesses"] == ["callback"]


@pytest.mark.parametrize("is_swept", [False, True])
def test_expiry_is_told_once_whether_or_not_it_is_swept(
    shop: Shop, clock: Clock, noon: datetime, is_swept: bool
) -> None:
    payment_id = shop.qr_code(expiry_minutes=1)["payment_id"]
    clock.move_to(noon + timedelta(seconds=59))
    assert types(shop, payment_id) == ["payment.pending"]
    clock.move_to(noon + timedelta(minutes=2))
    if is_swept:
        assert payments.expire_due(now=our_clock.now()) == 1
    told = only(shop, payment_id, "payment.expired")
    assert (told["at"], told["actor"]) == ("2026-11-21T05:01:00.000Z", "clock")
    assert types(shop, payment_id) == ["payment.pending", "payment.expired"]


def test_who_ends_a_code_before_its_time_is_named(shop: Shop) -> None:
    code = shop.qr_code()
    answer = shop.post(f"/v1/qr-codes/{code['qr_code_id']}/expire")
    told = only(shop, code["payment_id"], "payment.expired")
    assert told["actor"] == key_of(shop)
    assert told["request_id"] == answer.headers["X-Request-Id"]


@pytest.mark.parametrize("ends_it", [True, False])
def test_where_expiry_makes_no_events_it_is_known_whether_somebody_ended_it(
    shop: Shop, clock: Clock, settings: Settings, ends_it: bool
) -> None:
    settings.EXPIRY_EVENTS = False
    code = shop.qr_code(expiry_minutes=1)
    clock.shift(7)
    if ends_it:
        shop.post(f"/v1/qr-codes/{code['qr_code_id']}/expire")
    clock.shift(60)
    actor = only(shop, code["payment_id"], "payment.expired")["actor"]
    assert actor == (key_of(shop) if ends_it else "clock")


def test_the_clock_is_not_blamed_where_nobody_kept_who_ended_a_code(shop: Shop, clock: Clock) -> None:
    code = shop.qr_code(expiry_minutes=1)
    clock.shift(7)
    shop.post(f"/v1/qr-codes/{code['qr_code_id']}/expire")
    QrCode.objects.update(ended_by="", ended_request_id="")  # as in the time before
    assert only(shop, code["payment_id"], "payment.expired")["actor"] is None


@pytest.mark.parametrize("tells", [True, False])
def test_a_payment_that_was_told_late_expired_before_it_succeeded(
    shop: Shop, bank: BankCaller, clock: Clock, noon: datetime, settings: Settings, tells: bool
) -> None:
    settings.EXPIRY_EVENTS = tells
    code = shop.qr_code(expiry_minutes=1)
    clock.move_to(noon + timedelta(minutes=2))
    bank.tell(code, paid_at=noon)
    assert types(shop, code["payment_id"]) == [
        "payment.pending",
        "payment.expired",
        "bank.notice",
        "payment.succeeded",
    ]


@pytest.mark.parametrize(("kind", "last"), [("credit", "payment.succeeded"), ("decline", "payment.failed")])
def test_what_ended_in_time_never_expires(
    shop: Shop, bank: BankCaller, clock: Clock, noon: datetime, kind: str, last: str
) -> None:
    code = shop.qr_code(expiry_minutes=1)
    bank.tell(code, type=kind)
    clock.move_to(noon + timedelta(days=1))
    assert types(shop, code["payment_id"]) == ["payment.pending", "bank.notice", last]


def test_a_line_of_a_statement_is_a_witness(shop: Shop, code: dict[str, Any], paid: str) -> None:
    named_in_a_statement(code)
    told = only(shop, paid, "bank.statement")
    assert (told["details"]["result"], told["details"]["receipt_id"]) == (
        "attached",
        Receipt.objects.get().pk,
    )
    assert page(shop, paid)["witnesses"] == ["callback", "statement"]


@pytest.mark.parametrize(
    ("act", "last"),
    [("fails", ["refund.told", "refund.failed"]), ("canceled", ["refund.canceled"])],
)
def test_a_refund_that_does_not_go_is_told_to_its_end(
    shop: Shop, bank: BankCaller, served_by: Callable[..., Any], act: str, last: list[str]
) -> None:
    served_by(sends=[Word("failed", failure_code="account_closed")])
    counter = Counter(shop, bank)
    paid = counter.paid()
    refund = counter.refund(paid)
    if act == "canceled":
        counter.act(refund, "cancel")
    carry_out()
    assert types(shop, paid)[3:] == ["refund.created", *last]
    end = entries(shop, paid)[-1]
    assert act == "fails" or end["actor"] == key_of(shop)
    assert end["details"].get("failure_code") == ("account_closed" if act == "fails" else None)


@pytest.mark.usefixtures("loopback")
def test_an_attempt_says_when_the_next_one_follows(
    shop: Shop, bank: BankCaller, receiver: Receiver, clock: Clock
) -> None:
    endpoint = make_endpoint(shop, receiver.url(), events=[PAID])
    receiver.on("/hook", Reply(status=503), Reply())
    code = shop.qr_code()
    bank.tell(code)
    deliveries.drain(now=our_clock.now)
    first = only(shop, code["payment_id"], "webhook.attempt")["details"]
    assert (first["event"], first["webhook_id"]) == (PAID, endpoint.id)
    assert (first["http_status"], first["error"], first["number"]) == (503, "http_5xx", 1)
    assert first["next_attempt_at"] > our_clock.iso(our_clock.now())
    clock.shift(60)
    deliveries.drain(now=our_clock.now)
    both = [entry["details"] for entry in entries(shop, code["payment_id"])][-2:]
    assert [each["next_attempt_at"] for each in both] == [None, None]
    assert [each["http_status"] for each in both] == [503, 200]


def test_a_page_takes_a_handful_of_statements_however_much_happened(shop: Shop, bank: BankCaller) -> None:
    make_endpoint(shop, events=[PAID])
    code = shop.qr_code()
    bank.tell(code)
    payment = Payment.objects.get()
    costs = []
    for times in (3, 300):
        attempted(payment.pk, times)
        page(shop, payment.pk)
        with CaptureQueriesContext(
            connection,
        ) as asked_of_it:
            whole = page(shop, payment.pk, "?limit=50&offset=1")
        costs.append(len(asked_of_it))
    assert whole["total"] == 306
    assert max(costs) < 20
    assert costs[1] <= costs[0]


def test_pages_follow_each_other_without_gaps(shop: Shop, bank: BankCaller) -> None:
    make_endpoint(shop, events=[PAID])
    bank.tell(shop.qr_code())
    payment = Payment.objects.get()
    attempted(payment.pk, 7)  # in one millisecond
    whole = page(shop, payment.pk)["timeline"]
    pieces = [page(shop, payment.pk, f"?limit=3&offset={offset}") for offset in range(0, 12, 3)]
    assert [entry for piece in pieces for entry in piece["timeline"]] == whole
    assert len(whole) == 10 and {piece["total"] for piece in pieces} == {10}
    for query in ("?limit=0", "?limit=101", "?offset=-1", "?limit=x"):
        refused = shop.get(f"/v1/payments/{payment.pk}/timeline{query}").json()["error"]
        assert (refused["code"], refused["type"]) == ("invalid_parameters", "validation_error")


def test_nobody_is_named_and_no_account_is_whole(shop: Shop, code: dict[str, Any], paid: str) -> None:
    named_in_a_statement(code)
    decided(Receipt.objects.get(), "accepted", payment_id=paid)
    text = shop.get(f"/v1/payments/{paid}/timeline").content.decode()
    assert "xxxxxx7890" in text
    for private in ("1234567890", "Somchai", "สมชาย", "malee", CLERK, WHY):
        assert private not in text


def test_money_attached_elsewhere_is_told_at_both_payments(
    shop: Shop, bank: BankCaller, code: dict[str, Any], paid: str
) -> None:
    other = shop.qr_code()["payment_id"]
    bank.tell(code)
    receipt = Receipt.objects.get(outcome="duplicate")
    acts.attach(receipt.pk, payment_id=other, by=CLERK, why=WHY, now=our_clock.now())
    assert only(shop, paid, "staff.attached")["details"]["subject_id"] == receipt.pk
    assert types(shop, other)[1:] == ["bank.notice", "staff.attached", "payment.succeeded"]
    assert page(shop, other)["witnesses"] == ["callback"]


def test_anothers_payment_is_not_there(rival: Shop, paid: str) -> None:
    answer = rival.get(f"/Thai/v1/payments/{paid}/timeline")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "payment_not_found")
