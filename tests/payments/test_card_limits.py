"""Limits of card payments: slots, deadlines, and the circuit breaker of a silent acquirer."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial

import pytest
from pytest_django import Settings

from banks import ChargeResult, parallel
from core import clock
from core.work.due_work import BATCH_SIZE
from idempotency.models import IdempotencyKey
from payments import cards
from payments.card_inquiries import _work
from payments.models import CardCharge, Payment
from sandbox.acquirer_server import AcquirerServer
from sandbox.models import SandboxCharge
from tests import webhook_receiver
from tests.concurrency import run_concurrently
from tests.conftest import Shop, open_shop
from tests.error_messages import check_error
from tests.payments.card_builders import PATH, error_of, events, inquire, request
from tests.tables import count_rows
from tests.webhook_receiver import Reply
from transfers import circuit_breakers, safe_mode
from transfers.models import CircuitBreaker

pytestmark = pytest.mark.slow

CALLS = 4


@pytest.fixture(autouse=True)
def few_slots(settings: Settings) -> None:
    settings.CARD_CONCURRENCY = CALLS


@contextmanager
def slots_taken(shop: Shop, calls: int) -> Iterator[None]:
    """Take this many slots, as if card payments of the shop waited for their acquirer."""
    with ExitStack() as held:
        for _ in range(calls):
            held.enter_context(cards._calls.hold(shop.merchant.id, total=CALLS, share=CALLS))
        yield


@pytest.mark.parametrize("key", [None, "order-1"])
def test_card_payment_above_the_merchant_limit_is_503_and_stores_nothing(
    card_shop: Shop, key: str | None
) -> None:
    before = count_rows()
    with slots_taken(card_shop, CALLS // 2):
        refused = card_shop.post(PATH, request(), key=key)
    assert error_of(refused) == (503, "too_many_card_payments", "api_error")
    check_error(refused.json(), "too_many_card_payments")
    assert int(refused.headers["Retry-After"]) >= 1
    assert count_rows() == before
    assert card_shop.post(PATH, request(), key=key).json()["status"] == "succeeded"
    assert SandboxCharge.objects.count() == 1


def test_merchant_at_the_card_limit_leaves_slots_to_another_merchant(card_shop: Shop) -> None:
    rival = open_shop("Larb Palace")
    with slots_taken(rival, CALLS // 2):
        assert card_shop.post(PATH, request()).json()["status"] == "succeeded"


def test_card_payment_above_the_limit_of_the_process_is_refused(card_shop: Shop) -> None:
    with slots_taken(open_shop("Larb Palace"), CALLS // 2), slots_taken(open_shop("Pad Thai"), CALLS // 2):
        assert error_of(card_shop.post(PATH, request()))[:2] == (503, "too_many_card_payments")
    assert not Payment.objects.exists() and not SandboxCharge.objects.exists()


def test_stored_answer_is_replayed_although_no_slot_is_free(card_shop: Shop) -> None:
    first = card_shop.post(PATH, request(), key="order-1")
    with slots_taken(card_shop, CALLS):
        again = card_shop.post(PATH, request(), key="order-1")
    assert (again.status_code, again.content) == (200, first.content)


@pytest.mark.parametrize("token", ["tok_test_visa", "tok_test_declined", "tok_test_used", "tok_test_nothing"])
def test_card_payment_slot_is_released_after_every_outcome(card_shop: Shop, token: str) -> None:
    for _ in range(CALLS):
        assert card_shop.post(PATH, request(token)).status_code in (200, 400, 402)
    assert cards._calls.taken == 0


def test_concurrent_repeats_of_one_charge_use_one_slot(card_shop: Shop) -> None:
    with slots_taken(card_shop, CALLS // 2 - 1):
        answers = run_concurrently(*[partial(card_shop.post, PATH, request(), key="order-1")] * 6)
    assert {answer.status_code for answer in answers} == {200}
    assert SandboxCharge.objects.count() == 1


def test_acquirer_call_beyond_the_deadline_leaves_the_payment_pending(
    acquirer: AcquirerServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The timeouts of the adapter itself are a minute here."""
    monkeypatch.setattr(parallel, "CALL_SECONDS", 0.3)
    card_shop, real = open_shop("Somtam House"), settings.SANDBOX_ACQUIRER_URL
    with webhook_receiver.running_receiver() as silent:
        silent.on("/charges", Reply(hangs=True))
        settings.SANDBOX_ACQUIRER_URL = silent.base_url
        answer = card_shop.post(PATH, request(), key="order-1")
    assert (answer.status_code, answer.json()["status"]) == (200, "pending")
    assert (events(), CardCharge.objects.get().state) == (["payment.pending"], "pending")
    assert IdempotencyKey.objects.count() == 1
    settings.SANDBOX_ACQUIRER_URL = real
    monkeypatch.setattr(parallel, "CALL_SECONDS", 60.0)
    assert inquire() == 1


CHARGES = BATCH_SIZE + 1


@contextmanager
def silence(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[None]:
    """The acquirer accepts connections and never answers. Calls end after 0.3 s."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as silent, monkeypatch.context() as patch:
        real, settings.SANDBOX_ACQUIRER_URL = settings.SANDBOX_ACQUIRER_URL, url_of(silent)
        patch.setattr(parallel, "CALL_SECONDS", 0.3)
        patch.setattr(circuit_breakers, "SLOW_CALL_SECONDS", 0.1)
        yield
        settings.SANDBOX_ACQUIRER_URL = real


def url_of(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}"


def store_charges(shop: Shop, count: int = CHARGES) -> None:
    """Store card payments whose process died before the call."""
    for _ in range(count):
        now = clock.now()
        purchase = cards.draft(merchant=shop.merchant, token_id="tok_test_visa", amount=150_000, now=now)
        cards.store(purchase)


def later(seconds: float) -> Callable[[], datetime]:
    return lambda: clock.now() + timedelta(seconds=seconds)


def test_charges_of_a_silent_acquirer_are_found_after_the_circuit_opens(
    card_shop: Shop, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_charges(card_shop)
    with silence(monkeypatch, settings):
        assert inquire() == BATCH_SIZE  # side by side; then the circuit is open
        assert inquire() == 0
    assert inquire() == 0
    assert inquire(later(circuit_breakers.OPEN_PERIODS[0].total_seconds())) == CHARGES
    assert not CircuitBreaker.objects.exists()
    assert set(CardCharge.objects.values_list("state", flat=True)) == {"pending"}  # it does not know them


def test_card_payment_with_an_open_circuit_is_a_503_and_stores_nothing(card_shop: Shop) -> None:
    circuit_breakers.record_calls(
        [(cards.counterparty("sandbox"), True)] * circuit_breakers.FAILURES_TO_OPEN, now=clock.now()
    )
    before = count_rows()
    refused = card_shop.post(PATH, request(), key="order-1")
    assert count_rows() == before
    assert error_of(refused) == (503, "acquirer_unavailable", "api_error")
    check_error(refused.json(), "acquirer_unavailable")
    assert 1 <= int(refused.headers["Retry-After"]) <= circuit_breakers.OPEN_PERIODS[0].total_seconds()
    CircuitBreaker.objects.update(open_until=clock.now())
    assert card_shop.post(PATH, request(), key="order-1").json()["status"] == "succeeded"


def test_timeout_test_token_opens_no_circuit(
    acquirer: AcquirerServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the test of one merchant would stop the card payments of all test merchants."""
    card_shop = open_shop("Somtam House")
    with silence(monkeypatch, settings):
        for _ in range(circuit_breakers.FAILURES_TO_OPEN + 1):
            assert card_shop.post(PATH, request("tok_test_timeout")).json()["status"] == "pending"
    assert not CircuitBreaker.objects.exists()
    assert card_shop.post(PATH, request()).json()["status"] == "succeeded"


def test_inquiries_of_another_acquirer_continue_while_an_acquirer_is_silent(card_shop: Shop) -> None:
    store_charges(card_shop, 1)

    def held(name: str, stack: ExitStack) -> None:
        for _ in range(_work.max_runs_of_one):
            stack.enter_context(_work.bulkhead.hold(name, total=_work.max_runs, share=_work.max_runs))

    with ExitStack() as stack:
        held("omise", stack)
        assert inquire() == 1
    with ExitStack() as stack:
        held("sandbox", stack)
        assert inquire() == 0


def test_charge_answer_that_cannot_be_stored_does_not_stop_other_inquiries(
    card_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_charges(card_shop, 2)
    broken = str(CardCharge.objects.order_by("pk").values_list("pk", flat=True).first())
    complete = cards.complete

    def break_one(payment_id: str, result: ChargeResult, *, now: datetime) -> Payment | None:
        if payment_id == broken:
            raise RuntimeError
        return complete(payment_id, result, now=now)

    monkeypatch.setattr(cards, "complete", break_one)
    assert inquire() == 2
    assert dict(CardCharge.objects.values_list("pk", "state"))[broken] == "submitted"
    assert CardCharge.objects.filter(state="pending").count() == 1


def test_card_is_not_charged_in_safe_mode(card_shop: Shop) -> None:
    safe_mode.pause(reason="A restore", now=clock.now())
    before = count_rows()
    refused = card_shop.post(PATH, request(), key="order-1")
    assert error_of(refused) == (503, "safe_mode", "api_error")
    check_error(refused.json(), "safe_mode")
    assert int(refused.headers["Retry-After"]) == cards.SAFE_MODE_RETRY_SECONDS
    assert count_rows() == before
    safe_mode.resume(reason="Compared", now=clock.now())
    assert card_shop.post(PATH, request(), key="order-1").json()["status"] == "succeeded"
