"""A counterparty that stays silent rests, and everybody else is served meanwhile."""

from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta

import pytest
import time_machine

import banks
from banks import Word
from core import clock
from tests.transfers.cast import Bank, Recorder, an_order, pass_time, queued, work
from transfers import breakers, services
from transfers.breakers import RESTS, SILENCES_TO_OPEN, Party
from transfers.models import CircuitBreaker, Transfer

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stopped_clock")]
OMISE, SCB = Party("acquirer:omise"), Party("bank:scb", "mch_1")


def silent(party: Party = OMISE, times: int = SILENCES_TO_OPEN) -> None:
    breakers.record([(party, True)] * times, now=clock.now())


def rest_of(party: Party) -> timedelta | None:
    until = breakers.open_until(party, clock.now())
    return None if until is None else until - clock.now()


@pytest.fixture
def every_unknown_answer_is_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breakers, "SILENCE_SECONDS", 0.0)


def queued_at(route: str, merchant_id: str = "") -> Transfer:
    return services.queue(an_order(), route=route, at=clock.now(), merchant_id=merchant_id)


def test_circuit_opens_after_silences_in_a_row_and_rests_get_longer() -> None:
    silent(times=SILENCES_TO_OPEN - 1)
    assert rest_of(OMISE) is None
    rests = []
    for _ in range(len(RESTS) + 1):
        silent(times=1)
        rest = rest_of(OMISE)
        assert rest is not None
        rests.append(rest)
        silent(times=5)  # calls that were under way already make the rest no longer
        assert rest_of(OMISE) == rest
        CircuitBreaker.objects.update(open_until=clock.now())
    assert rests == [*RESTS, RESTS[-1]]


def test_one_answer_closes_the_circuit() -> None:
    silent()
    breakers.record([(OMISE, True), (OMISE, False)], now=clock.now())
    assert rest_of(OMISE) is None
    silent(times=1)
    assert rest_of(OMISE) is None


def test_acquirer_rests_for_all_merchants_and_a_bank_for_one() -> None:
    assert Party.of("acquirer:omise", "mch_1") == OMISE
    silent(SCB)
    assert breakers.resting("bank:scb", clock.now()) == {"mch_1"}
    assert breakers.resting("acquirer:omise", clock.now()) == set()


@pytest.mark.parametrize(
    ("said", "seconds", "is_silence"),
    [("unknown", 10.0, True), ("unknown", 0.1, False), ("not_sent", 3.0, False), ("succeeded", 9.0, False)],
)
def test_only_an_answer_that_is_waited_for_in_vain_is_silence(
    said: str, seconds: float, is_silence: bool
) -> None:
    assert breakers.is_silence(said, seconds) == is_silence


@pytest.mark.usefixtures("every_unknown_answer_is_silence")
def test_orders_of_a_silent_bank_rest_until_it_answers(owner: Recorder, served_by: Serving) -> None:
    bank = served_by(sends=[Word("unknown")], inquiries=[Word("succeeded", "b-1")])
    orders = [queued() for _ in range(SILENCES_TO_OPEN)]
    work(owner)
    pass_time(60)
    assert (work(owner), bank.inquired) == (0, [])
    with time_machine.travel(clock.now() + RESTS[0], tick=False):
        assert work(owner) == len(orders)
    assert owner.fates == ["succeeded"] * len(orders)
    assert not CircuitBreaker.objects.exists()


def test_merchant_whose_bank_is_silent_does_not_stop_another_merchant(
    owner: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = Bank(sends=[Word("succeeded")])
    monkeypatch.setattr(banks, "sender", lambda route, link=None: bank)
    monkeypatch.setattr("transfers.services.links.of", lambda merchant_id: None)
    silent(SCB)
    queued_at("bank:scb", "mch_1")
    other = queued_at("bank:scb", "mch_2")
    assert (work(owner), bank.sent) == (1, [other.id])


def test_runs_that_wait_for_one_route_leave_the_other_routes_to_further_runs(
    owner: Recorder, served_by: Serving
) -> None:
    bank = served_by(sends=[Word("succeeded")])
    queued_at("bank:scb")
    other = queued_at("bank:bbl")
    with ExitStack() as held:
        for _ in range(services.RUNS_OF_ROUTE):
            name = "withdrawal bank:scb"
            held.enter_context(services._runs.held(name, total=services.RUNS, share=services.RUNS_OF_ROUTE))
        assert (work(owner), bank.sent) == (1, [other.id])
    assert work(owner) == 1


def test_routes_with_something_due_are_found() -> None:
    for route in ("bank:scb", "bank:bbl", "bank:bbl", "acquirer:omise"):
        queued_at(route)
    Transfer.objects.filter(route="bank:scb").update(due_at=clock.now() + timedelta(seconds=1))
    assert Transfer.objects.due_routes("withdrawal", clock.now()) == ["acquirer:omise", "bank:bbl"]
    assert Transfer.objects.due_routes("refund", clock.now()) == []
