"""An acquirer that is asked about charges and stays silent: what waits for it, and what does not."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta

import pytest
from pytest_django import Settings

from banks import ChargeResult, parallel
from core import clock
from core.due_work import BATCH_SIZE
from payments import cards
from payments.card_inquiries import _work
from payments.models import CardCharge, Payment
from sandbox.acquirer_server import AcquirerServer
from tests.conftest import Shop, open_shop
from tests.payments.card_builders import PATH, error_of, inquire, request
from tests.tables import count_rows
from transfers import circuit_breakers
from transfers.models import CircuitBreaker

CHARGES = BATCH_SIZE + 1


@contextmanager
def silence(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[None]:
    """The acquirer takes connections and never answers; a call ends after a moment."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as silent, monkeypatch.context() as patch:
        real, settings.SANDBOX_ACQUIRER_URL = settings.SANDBOX_ACQUIRER_URL, url_of(silent)
        patch.setattr(parallel, "CALL_SECONDS", 0.3)
        patch.setattr(circuit_breakers, "SLOW_CALL_SECONDS", 0.1)
        yield
        settings.SANDBOX_ACQUIRER_URL = real


def url_of(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}"


def stored_charges(shop: Shop, count: int = CHARGES) -> None:
    """Card payments whose process died before the acquirer answered."""
    for _ in range(count):
        now = clock.now()
        purchase = cards.draft(merchant=shop.merchant, token_id="tok_test_visa", amount=150_000, now=now)
        cards.store(purchase)


def later(seconds: float) -> Callable[[], datetime]:
    return lambda: clock.now() + timedelta(seconds=seconds)


@pytest.mark.slow
def test_circuit_of_a_silent_acquirer_opens_and_its_charges_are_found_later(
    till: Shop, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_charges(till)
    with silence(monkeypatch, settings):
        assert inquire() == BATCH_SIZE  # side by side, and then it rests
        assert inquire() == 0
    assert inquire() == 0
    assert inquire(later(circuit_breakers.OPEN_PERIODS[0].total_seconds())) == CHARGES
    assert not CircuitBreaker.objects.exists()
    assert set(CardCharge.objects.values_list("state", flat=True)) == {"pending"}  # it never heard of them


def test_card_payment_with_an_open_circuit_is_a_503_and_stores_nothing(till: Shop) -> None:
    circuit_breakers.record_calls(
        [(cards.counterparty("sandbox"), True)] * circuit_breakers.FAILURES_TO_OPEN, now=clock.now()
    )
    before = count_rows()
    refused = till.post(PATH, request(), key="order-1")
    assert count_rows() == before
    assert error_of(refused) == (503, "acquirer_unavailable", "api_error")
    assert 1 <= int(refused.headers["Retry-After"]) <= circuit_breakers.OPEN_PERIODS[0].total_seconds()
    CircuitBreaker.objects.update(open_until=clock.now())
    assert till.post(PATH, request(), key="order-1").json()["status"] == "succeeded"


@pytest.mark.slow
def test_charges_that_a_test_token_makes_silent_open_no_circuit(
    acquirer: AcquirerServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One merchant's test would stop the card payments of all test merchants."""
    till = open_shop("Somtam House")
    with silence(monkeypatch, settings):
        for _ in range(circuit_breakers.FAILURES_TO_OPEN + 1):
            assert till.post(PATH, request("tok_test_timeout")).json()["status"] == "pending"
    assert not CircuitBreaker.objects.exists()
    assert till.post(PATH, request()).json()["status"] == "succeeded"


def test_runs_that_wait_for_one_acquirer_leave_the_other_to_further_runs(till: Shop) -> None:
    stored_charges(till, 1)

    def held(name: str, stack: ExitStack) -> None:
        for _ in range(_work.max_runs_of_one):
            stack.enter_context(_work.bulkhead.hold(name, total=_work.max_runs, share=_work.max_runs))

    with ExitStack() as stack:
        held("omise", stack)
        assert inquire() == 1
    with ExitStack() as stack:
        held("sandbox", stack)
        assert inquire() == 0


def test_answer_that_cannot_be_kept_does_not_stop_the_others(
    till: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_charges(till, 2)
    broken = str(CardCharge.objects.order_by("pk").values_list("pk", flat=True).first())
    settle = cards.complete

    def break_one(payment_id: str, said: ChargeResult, *, now: datetime) -> Payment | None:
        if payment_id == broken:
            raise RuntimeError
        return settle(payment_id, said, now=now)

    monkeypatch.setattr(cards, "complete", break_one)
    assert inquire() == 2
    assert dict(CardCharge.objects.values_list("pk", "state"))[broken] == "submitted"
    assert CardCharge.objects.filter(state="pending").count() == 1
