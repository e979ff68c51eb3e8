"""A counterparty that stays silent rests, and everybody else is served meanwhile."""

from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta

import pytest
import time_machine

import banks
from banks import TransferResult
from core import clock
from tests.transfers.builders import Bank, RecordingHandler, an_order, pass_time, queued, send_due
from transfers import circuit_breakers, services
from transfers.circuit_breakers import FAILURES_TO_OPEN, OPEN_PERIODS, Counterparty
from transfers.models import CircuitBreaker, Transfer

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stopped_clock")]
OMISE, SCB = Counterparty("acquirer:omise"), Counterparty("bank:scb", "mch_1")


def silent(party: Counterparty = OMISE, times: int = FAILURES_TO_OPEN) -> None:
    circuit_breakers.record_calls([(party, True)] * times, now=clock.now())


def rest_of(party: Counterparty) -> timedelta | None:
    until = circuit_breakers.open_until(party, clock.now())
    return None if until is None else until - clock.now()


@pytest.fixture
def every_unknown_answer_is_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit_breakers, "SLOW_CALL_SECONDS", 0.0)


def queued_at(route: str, merchant_id: str = "") -> Transfer:
    return services.queue(an_order(), route=route, at=clock.now(), merchant_id=merchant_id)


def test_circuit_opens_after_consecutive_failures_for_growing_periods() -> None:
    silent(times=FAILURES_TO_OPEN - 1)
    assert rest_of(OMISE) is None
    rests = []
    for _ in range(len(OPEN_PERIODS) + 1):
        silent(times=1)
        rest = rest_of(OMISE)
        assert rest is not None
        rests.append(rest)
        silent(times=5)  # calls that were under way already make the rest no longer
        assert rest_of(OMISE) == rest
        CircuitBreaker.objects.update(open_until=clock.now())
    assert rests == [*OPEN_PERIODS, OPEN_PERIODS[-1]]


def test_one_answer_closes_the_circuit() -> None:
    silent()
    circuit_breakers.record_calls([(OMISE, True), (OMISE, False)], now=clock.now())
    assert rest_of(OMISE) is None
    silent(times=1)
    assert rest_of(OMISE) is None


def test_circuit_of_an_acquirer_opens_for_all_merchants_and_of_a_bank_for_one() -> None:
    assert Counterparty.of("acquirer:omise", "mch_1") == OMISE
    silent(SCB)
    assert circuit_breakers.open_circuits("bank:scb", clock.now()) == {"mch_1"}
    assert circuit_breakers.open_circuits("acquirer:omise", clock.now()) == set()


@pytest.mark.parametrize(
    ("said", "seconds", "is_silence"),
    [("unknown", 10.0, True), ("unknown", 0.1, False), ("not_sent", 3.0, False), ("succeeded", 9.0, False)],
)
def test_only_a_slow_unknown_answer_is_a_failure(said: str, seconds: float, is_silence: bool) -> None:
    assert circuit_breakers.is_failure(said, seconds) == is_silence


@pytest.mark.usefixtures("every_unknown_answer_is_silence")
def test_orders_wait_while_the_circuit_of_their_bank_is_open(
    owner: RecordingHandler, served_by: Serving
) -> None:
    bank = served_by(sends=[TransferResult("unknown")], inquiries=[TransferResult("succeeded", "b-1")])
    orders = [queued() for _ in range(FAILURES_TO_OPEN)]
    send_due(owner)
    pass_time(60)
    assert (send_due(owner), bank.inquired) == (0, [])
    with time_machine.travel(clock.now() + OPEN_PERIODS[0], tick=False):
        assert send_due(owner) == len(orders)
    assert owner.fates == ["succeeded"] * len(orders)
    assert not CircuitBreaker.objects.exists()


def test_merchant_whose_bank_is_silent_does_not_stop_another_merchant(
    owner: RecordingHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = Bank(sends=[TransferResult("succeeded")])
    monkeypatch.setattr(banks, "sender", lambda route, link=None: bank)
    monkeypatch.setattr("transfers.services.bank_connections.credentials_of", lambda merchant_id: None)
    silent(SCB)
    queued_at("bank:scb", "mch_1")
    other = queued_at("bank:scb", "mch_2")
    assert (send_due(owner), bank.sent) == (1, [other.id])


def test_runs_that_wait_for_one_route_leave_the_other_routes_to_further_runs(
    owner: RecordingHandler, served_by: Serving
) -> None:
    bank = served_by(sends=[TransferResult("succeeded")])
    queued_at("bank:scb")
    other = queued_at("bank:bbl")
    with ExitStack() as held:
        work = services._work
        for _ in range(work.max_runs_of_one):
            hold = work.bulkhead.hold("withdrawal bank:scb", total=work.max_runs, share=work.max_runs_of_one)
            held.enter_context(hold)
        assert (send_due(owner), bank.sent) == (1, [other.id])
    assert send_due(owner) == 1


def test_routes_with_something_due_are_found() -> None:
    for route in ("bank:scb", "bank:bbl", "bank:bbl", "acquirer:omise"):
        queued_at(route)
    Transfer.objects.filter(route="bank:scb").update(due_at=clock.now() + timedelta(seconds=1))
    assert Transfer.objects.due_routes("withdrawal", clock.now()) == ["acquirer:omise", "bank:bbl"]
    assert Transfer.objects.due_routes("refund", clock.now()) == []
