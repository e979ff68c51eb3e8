"""Crashes during a card payment, and identical requests at the same time: one charge."""

from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.utils import DatabaseError

from banks import ChargeResult
from banks.sandbox_cards import SandboxAcquirer
from core import clock
from idempotency.errors import IdempotencyKeyInProgress
from payments import card_responses, cards
from payments.card_inquiries import inquire_due
from payments.models import CardCharge, Payment
from sandbox.models import SandboxCharge
from tests.concurrency import run_concurrently
from tests.conftest import Shop, new_client
from tests.payments.card_builders import PATH, error_of, events, inquire, request, rows_of, short_call_timeout

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("audit_is_clean")]


class Crash(Exception):
    """The process dies here."""


def crash_at(step: Callable[..., Any], *, after: bool) -> Callable[..., Any]:
    """Return the step so that the process dies before or after it."""

    def run(*args: Any, **kwargs: Any) -> Any:
        if after:
            step(*args, **kwargs)
        raise Crash

    return run


def pay_and_crash(card_shop: Shop, step: str, *, after: bool, token: str = "tok_test_visa") -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cards, step, crash_at(getattr(cards, step), after=after))
        assert card_shop.post(PATH, request(token), key="order-1").status_code == 500


@pytest.fixture(autouse=True)
def lease_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SandboxAcquirer, "seconds", 0.0)


@pytest.mark.parametrize("after", [False, True])
def test_crash_before_the_first_commit_stores_nothing_and_a_retry_pays(card_shop: Shop, after: bool) -> None:
    pay_and_crash(card_shop, "store", after=after)
    assert not Payment.objects.exists()
    assert card_shop.post(PATH, request(), key="order-1").json()["status"] == "succeeded"
    assert SandboxCharge.objects.count() == 1


@pytest.mark.parametrize(
    ("step", "after"), [("request_charge", True), ("complete", False), ("complete", True)]
)
def test_charge_with_lost_answer_is_found_by_inquiry(card_shop: Shop, step: str, after: bool) -> None:
    pay_and_crash(card_shop, step, after=after)
    pending = card_shop.post(PATH, request(), key="order-1")
    assert (pending.status_code, pending.json()["status"]) == (200, "pending")
    assert pending.headers["Idempotent-Replayed"] == "true"
    assert inquire() == 1
    paid = card_shop.post(PATH, request(), key="order-1").json()
    assert (paid["status"], paid["payment_id"]) == ("succeeded", pending.json()["payment_id"])
    assert rows_of(card_shop) == [("payment", "succeeded", 150_000)]
    assert events() == ["payment.succeeded"]
    assert (Payment.objects.count(), SandboxCharge.objects.count()) == (1, 1)


def test_decline_with_lost_answer_is_found_by_inquiry(card_shop: Shop) -> None:
    pay_and_crash(card_shop, "complete", after=False, token="tok_test_declined")
    inquire()
    again = card_shop.post(PATH, request("tok_test_declined"), key="order-1")
    assert error_of(again) == (402, "card_declined", "payment_error")
    assert again.json()["error"]["payment_id"] == Payment.objects.get().id
    assert rows_of(card_shop) == [("failed", "failed", 150_000)]


def test_charge_never_requested_stays_pending_and_then_fails(card_shop: Shop) -> None:
    """A request may still be on its way to the acquirer, but not after MISSING_AFTER."""
    pay_and_crash(card_shop, "request_charge", after=False)
    assert inquire() == 1
    assert card_shop.post(PATH, request(), key="order-1").json()["status"] == "pending"
    assert events() == ["payment.pending"]
    assert inquire(now=lambda: clock.now() + cards.MISSING_AFTER + timedelta(seconds=1)) == 1
    assert error_of(card_shop.post(PATH, request(), key="order-1")) == (
        402,
        "processing_error",
        "payment_error",
    )
    assert events() == ["payment.pending", "payment.failed"]
    assert not SandboxCharge.objects.exists()


def test_charge_after_the_time_limit_is_not_requested(
    card_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards, "CHARGE_WITHIN", timedelta(seconds=-1))
    assert card_shop.post(PATH, request()).json()["status"] == "pending"
    assert not SandboxCharge.objects.exists()


def test_charge_found_after_the_payment_failed_is_logged(
    card_shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    pay_and_crash(card_shop, "request_charge", after=False)
    inquire(now=lambda: clock.now() + cards.MISSING_AFTER + timedelta(seconds=1))
    payment = Payment.objects.get()
    with transaction.atomic():
        cards.complete(payment.id, ChargeResult("succeeded", charge_id="sbc_1"), now=clock.now())
    assert Payment.objects.get().status == "failed"
    assert payment.id in caplog.text


def test_refused_card_token_fails_a_stored_payment(card_shop: Shop) -> None:
    pay_and_crash(card_shop, "request_charge", after=False)
    inquire()
    with transaction.atomic():
        cards.complete(
            Payment.objects.get().id,
            ChargeResult("refused", failure_code="invalid_token_id"),
            now=clock.now(),
        )
    again = card_shop.post(PATH, request(), key="order-1")
    assert error_of(again) == (402, "processing_error", "payment_error")


def test_resumed_card_request_of_a_deleted_payment_is_409(card_shop: Shop) -> None:
    purchase = cards.draft(
        merchant=card_shop.merchant, token_id="tok_test_used", amount=150_000, now=clock.now()
    )
    with pytest.raises(IdempotencyKeyInProgress):
        card_responses.job(purchase, clock.now).resume(purchase.payment.id)


def test_charge_inquiry_delays_grow_to_an_hour(card_shop: Shop) -> None:
    pay_and_crash(card_shop, "request_charge", after=False)
    waits = []
    for _ in range(8):
        now = clock.now()
        inquire(now=lambda now=now: now)  # type: ignore[misc]
        waits.append((CardCharge.objects.get().due_at - now).total_seconds())
    assert waits == [5, 10, 30, 60, 300, 3600, 3600, 3600]


def test_concurrent_inquiries_complete_a_card_payment_once(card_shop: Shop) -> None:
    pay_and_crash(card_shop, "complete", after=False)
    CardCharge.objects.update(due_at=clock.now() - timedelta(seconds=1))
    assert sum(run_concurrently(*[lambda: inquire_due(now=clock.now)] * 5)) == 1
    assert rows_of(card_shop) == [("payment", "succeeded", 150_000)]


@pytest.mark.parametrize("token", ["tok_test_visa", "tok_test_declined", "tok_test_timeout", "tok_test_used"])
def test_identical_concurrent_card_requests_charge_once(
    card_shop: Shop, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SandboxAcquirer, "seconds", 60.0)  # none of them is dead
    shops = [Shop(card_shop.merchant, card_shop.secret_key, new_client()) for _ in range(20)]
    with short_call_timeout() if token == "tok_test_timeout" else nullcontext():
        answers = run_concurrently(
            *[partial(shop.post, PATH, request(token), key="order-1") for shop in shops]
        )
    assert len({answer.content for answer in answers}) == 1
    is_kept = token != "tok_test_used"
    assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == (1 if is_kept else 20)
    assert Payment.objects.count() == SandboxCharge.objects.count() == (1 if is_kept else 0)


@pytest.mark.parametrize(
    "attack",
    [
        "DELETE FROM payments_payment",
        "DELETE FROM payments_cardcharge",
        "TRUNCATE payments_cardcharge CASCADE",
        "UPDATE payments_cardcharge SET state = 'submitted', completed_at = NULL",
        "UPDATE payments_cardcharge SET state = 'refused'",
        "UPDATE payments_cardcharge SET charge_id = 'other'",
        "UPDATE payments_cardcharge SET acquirer = 'other'",
        "UPDATE payments_cardcharge SET completed_at = NULL",
        "UPDATE payments_cardcharge SET state = 'paid'",
    ],
)
def test_database_refuses_deletion_and_change_of_a_charge(card_shop: Shop, attack: str) -> None:
    card_shop.post(PATH, request())
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(attack)


def test_pending_payment_with_a_requested_charge_cannot_be_deleted(card_shop: Shop) -> None:
    pay_and_crash(card_shop, "request_charge", after=True)
    with pytest.raises(DatabaseError, match=r"never deleted|is deleted"), transaction.atomic():
        Payment.objects.get().delete()
