"""Circuit breakers: calls to a silent counterparty stop, and the others are served."""

from contextlib import ExitStack
from datetime import timedelta

import pytest
import time_machine

import banks
from banks import TransferResult
from core import clock
from tests.transfers.builders import Bank, FakeHandler, Serving, an_order, pass_time, queue, queued, send_due
from transfers import circuit_breakers, services
from transfers.circuit_breakers import FAILURES_TO_OPEN, OPEN_PERIODS, Counterparty
from transfers.models import CircuitBreaker, Transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stopped_clock")]
OMISE, SCB = Counterparty("acquirer:omise"), Counterparty("bank:scb", "mch_1")


def fail_calls(counterparty: Counterparty = OMISE, times: int = FAILURES_TO_OPEN) -> None:
    circuit_breakers.record_calls([(counterparty, True)] * times, now=clock.now())


def open_period(counterparty: Counterparty) -> timedelta | None:
    until = circuit_breakers.open_until(counterparty, clock.now())
    return None if until is None else until - clock.now()


@pytest.fixture
def every_unknown_answer_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit_breakers, "SLOW_CALL_SECONDS", 0.0)


def queued_at(route: str, merchant_id: str = "") -> Transfer:
    return queue(an_order(), route=route, merchant_id=merchant_id)


def test_circuit_opens_after_consecutive_failures_for_growing_periods() -> None:
    fail_calls(times=FAILURES_TO_OPEN - 1)
    assert open_period(OMISE) is None
    periods = []
    for _ in range(len(OPEN_PERIODS) + 1):
        fail_calls(times=1)
        period = open_period(OMISE)
        assert period is not None
        periods.append(period)
        fail_calls(times=5)  # results of earlier calls do not extend the period
        assert open_period(OMISE) == period
        CircuitBreaker.objects.update(open_until=clock.now())
    assert periods == [*OPEN_PERIODS, OPEN_PERIODS[-1]]


def test_single_answer_closes_the_circuit() -> None:
    fail_calls()
    circuit_breakers.record_calls([(OMISE, True), (OMISE, False)], now=clock.now())
    assert open_period(OMISE) is None
    fail_calls(times=1)
    assert open_period(OMISE) is None


def test_acquirer_circuit_is_shared_and_bank_circuit_is_per_merchant() -> None:
    assert Counterparty.of("acquirer:omise", "mch_1") == OMISE
    fail_calls(SCB)
    assert circuit_breakers.open_circuits("bank:scb", clock.now()) == {"mch_1"}
    assert circuit_breakers.open_circuits("acquirer:omise", clock.now()) == set()


@pytest.mark.parametrize(
    ("result", "seconds", "is_failure"),
    [("unknown", 10.0, True), ("unknown", 0.1, False), ("not_sent", 3.0, False), ("succeeded", 9.0, False)],
)
def test_only_a_slow_unknown_answer_counts_as_circuit_failure(
    result: str, seconds: float, is_failure: bool
) -> None:
    assert circuit_breakers.is_failure(result, seconds) == is_failure


@pytest.mark.usefixtures("every_unknown_answer_is_a_failure")
@pytest.mark.slow
def test_orders_wait_while_the_circuit_of_a_bank_is_open(handler: FakeHandler, served_by: Serving) -> None:
    bank = served_by(sends=[TransferResult("unknown")], inquiries=[TransferResult("succeeded", "b-1")])
    orders = [queued() for _ in range(FAILURES_TO_OPEN)]
    send_due(handler)
    pass_time(60)
    assert (send_due(handler), bank.inquired) == (0, [])
    with time_machine.travel(clock.now() + OPEN_PERIODS[0], tick=False):
        assert send_due(handler) == len(orders)
    assert handler.statuses == ["succeeded"] * len(orders)
    assert not CircuitBreaker.objects.exists()


def test_silent_bank_of_one_merchant_does_not_stop_transfers_of_another_merchant(
    handler: FakeHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = Bank(sends=[TransferResult("succeeded")])
    monkeypatch.setattr(banks, "sender", lambda route, link=None: bank)
    monkeypatch.setattr("transfers.services.bank_connections.credentials_of", lambda merchant_id, bank: None)
    fail_calls(SCB)
    queued_at("bank:scb", "mch_1")
    other = queued_at("bank:scb", "mch_2")
    assert (send_due(handler), bank.sent) == (1, [other.id])


def test_transfers_of_other_routes_continue_while_a_route_is_silent(
    handler: FakeHandler, served_by: Serving
) -> None:
    bank = served_by(sends=[TransferResult("succeeded")])
    queued_at("bank:scb")
    other = queued_at("bank:bbl")
    with ExitStack() as held:
        work = services._work
        for _ in range(work.max_runs_of_one):
            hold = work.bulkhead.hold("withdrawal bank:scb", total=work.max_runs, share=work.max_runs_of_one)
            held.enter_context(hold)
        assert (send_due(handler), bank.sent) == (1, [other.id])
    assert send_due(handler) == 1


def test_due_routes_are_routes_with_due_transfers() -> None:
    for route in ("bank:scb", "bank:bbl", "bank:bbl", "acquirer:omise"):
        queued_at(route)
    Transfer.objects.filter(route="bank:scb").update(due_at=clock.now() + timedelta(seconds=1))
    assert Transfer.objects.due_routes("withdrawal", clock.now()) == ["acquirer:omise", "bank:bbl"]
    assert Transfer.objects.due_routes("refund", clock.now()) == []
