"""A job that commits twice around a call: its key is under way in between."""

from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event

import pytest
import time_machine

from core import clock
from core.http.responses import ApiResponse
from idempotency import services
from idempotency.errors import IdempotencyKeyInProgress, IdempotencyKeyReused
from idempotency.fingerprint import Fingerprint
from idempotency.keys import KeyedRequest
from idempotency.models import IN_PROGRESS, IdempotencyKey
from idempotency.services import TwoPhaseJob
from tests.concurrency import run_concurrently
from tests.conftest import Shop, open_shop
from tests.stack import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


class Crash(Exception):
    """The process is gone."""


class Refused(Exception):
    """A bulkhead without a free slot."""


@dataclass
class Recorded:
    """A job that writes down what happened, and can be made to crash or to be refused."""

    steps: list[str] = field(default_factory=list)
    status: int = 200
    crash_in: str = ""
    seconds: float = 60.0
    subject_id: str = "pay_1"
    during: Callable[[], object] = field(default=lambda: None)
    is_admitted: bool = True
    admitted: int = 0

    def job(self) -> TwoPhaseJob[str]:
        return TwoPhaseJob(
            subject_id=self.subject_id,
            seconds=self.seconds,
            admit=self._admit,
            prepare=lambda: self._step("prepare"),
            perform=self._perform,
            finish=lambda said: ApiResponse.of({"after": said, "at": self._step("finish")}, self.status),
            resume=lambda subject_id: ApiResponse.of({"as it stands": subject_id}),
        )

    def _admit(self, held: ExitStack) -> None:
        if not self.is_admitted:
            raise Refused
        self.admitted += 1
        held.callback(self._leave)

    def _leave(self) -> None:
        self.admitted -= 1

    def _perform(self) -> str:
        assert self.admitted == 1
        self.during()
        return self._step("perform")

    def _step(self, name: str) -> str:
        self.steps.append(name)
        if name == self.crash_in:
            raise Crash
        return name


def keyed_request(shop: Shop, body: str = "a") -> KeyedRequest:
    print_ = Fingerprint.of(method="POST", operation="pay", body=body)
    return KeyedRequest(shop.merchant, "k", print_, clock.now())


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop("Somtam House")


def test_two_phase_job_runs_once_and_response_is_stored(shop: Shop) -> None:
    recorded = Recorded()
    first = services.run_once(keyed_request(shop), recorded.job())
    again = services.run_once(keyed_request(shop), recorded.job())
    assert recorded.steps == ["prepare", "perform", "finish"]
    assert again == ApiResponse(200, first.body, {"Idempotent-Replayed": "true"})
    assert services.find_answer(keyed_request(shop)) == again


@pytest.mark.parametrize(("status", "is_kept"), [(200, True), (402, True), (400, False), (404, False)])
def test_only_2xx_and_402_responses_keep_the_idempotency_key(shop: Shop, status: int, is_kept: bool) -> None:
    services.run_once(keyed_request(shop), Recorded(status=status).job())
    assert IdempotencyKey.objects.exists() == is_kept


def test_crash_before_first_commit_stores_no_idempotency_key(shop: Shop) -> None:
    with pytest.raises(Crash):
        services.run_once(keyed_request(shop), Recorded(crash_in="prepare").job())
    assert not IdempotencyKey.objects.exists()


@pytest.mark.parametrize("step", ["perform", "finish"])
def test_two_phase_job_is_resumed_after_crash_after_first_commit(shop: Shop, step: str) -> None:
    with pytest.raises(Crash):
        services.run_once(keyed_request(shop), Recorded(crash_in=step).job())
    assert IdempotencyKey.objects.get().status == IN_PROGRESS
    assert services.find_answer(keyed_request(shop)) is None
    later = Recorded(seconds=0.0)
    answer = services.run_once(keyed_request(shop), later.job())
    assert (answer.body, answer.headers) == (b'{"as it stands":"pay_1"}', {"Idempotent-Replayed": "true"})
    assert later.steps == []


@pytest.mark.slow
def test_duplicate_of_two_phase_job_gets_409_after_wait(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "WAIT_SECONDS", 0.2)
    with pytest.raises(Crash):
        services.run_once(keyed_request(shop), Recorded(crash_in="perform").job())
    with pytest.raises(IdempotencyKeyInProgress) as refused:
        services.run_once(keyed_request(shop), Recorded().job())
    assert refused.value.retry_after == 1


def test_request_without_a_slot_is_refused_and_the_idempotency_key_stays_unused(shop: Shop) -> None:
    crowded = Recorded(is_admitted=False)
    with pytest.raises(Refused):
        services.run_once(keyed_request(shop), crowded.job())
    with pytest.raises(Refused):
        services.run_without_key(crowded.job())
    assert crowded.steps == [] and not IdempotencyKey.objects.exists()
    assert services.run_once(keyed_request(shop), Recorded().job()).status == 200


def test_repeat_of_a_running_request_needs_no_slot(shop: Shop) -> None:
    with pytest.raises(Crash):
        services.run_once(keyed_request(shop), Recorded(crash_in="perform").job())
    answer = services.run_once(keyed_request(shop), Recorded(seconds=0.0, is_admitted=False).job())
    assert answer.headers == {"Idempotent-Replayed": "true"}


@pytest.mark.parametrize("crash_in", ["", "prepare", "perform", "finish"])
def test_slot_is_released_after_success_refusal_or_error(shop: Shop, crash_in: str) -> None:
    recorded = Recorded(crash_in=crash_in)
    with pytest.raises(Crash) if crash_in else nullcontext():
        services.run_once(keyed_request(shop), recorded.job())
    assert recorded.admitted == 0


@pytest.mark.slow
def test_repeats_beyond_the_share_of_a_merchant_are_refused_quickly(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each that waits holds a thread of the web server."""
    monkeypatch.setattr(services, "SHORT_WAIT_SECONDS", 0.2)
    with pytest.raises(Crash):
        services.run_once(keyed_request(shop), Recorded(crash_in="perform").job())
    share = services.MAX_WAITING_PER_MERCHANT
    with ExitStack() as held:
        for _ in range(share):
            held.enter_context(services._waiting_slots.hold(shop.merchant.id, total=share, share=share))
        with pytest.raises(IdempotencyKeyInProgress):
            services.run_once(keyed_request(shop), Recorded().job())


def test_different_request_under_the_idempotency_key_is_refused_during_the_first(shop: Shop) -> None:
    with pytest.raises(Crash):
        services.run_once(keyed_request(shop), Recorded(crash_in="perform").job())
    with pytest.raises(IdempotencyKeyReused):
        services.run_once(keyed_request(shop, "b"), Recorded().job())
    with pytest.raises(IdempotencyKeyReused):
        services.find_answer(keyed_request(shop, "b"))


def test_response_is_not_stored_if_the_idempotency_key_expired_during_the_job(shop: Shop) -> None:
    """The key expired while the call was under way, and was taken for something else."""
    first = keyed_request(shop)
    with time_machine.travel(clock.now() + timedelta(hours=24), tick=False):
        second = keyed_request(shop, "b")
    other = Recorded(subject_id="pay_2")
    services.run_once(first, Recorded(during=lambda: services.run_once(second, other.job())).job())
    assert IdempotencyKey.objects.get().subject_id == "pay_2"
    assert services.find_answer(second) is not None


@pytest.mark.slow
def test_key_of_a_request_that_waited_is_as_old_as_its_own_call(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own repeat takes it for crashed by the age of the key, and must not count the wait."""
    has_key = Event()

    def wait_for_the_repeat() -> None:
        has_key.set()
        wait_until(lambda: services._waiting_slots.taken == 1, 60)

    def repeat_meanwhile() -> None:
        monkeypatch.setattr(services, "WAIT_SECONDS", 0.0)
        with pytest.raises(IdempotencyKeyInProgress):
            services.run_once(keyed_request(shop), Recorded(seconds=60.0).job())

    first = Recorded(status=400, during=wait_for_the_repeat)
    waited = Recorded(during=repeat_meanwhile)
    with time_machine.travel(clock.now() - timedelta(seconds=60), tick=False):
        arrived_a_minute_ago = keyed_request(shop)

    def run_after_the_wait() -> ApiResponse:
        has_key.wait(60)
        return services.run_once(arrived_a_minute_ago, waited.job())

    run_concurrently(lambda: services.run_once(keyed_request(shop), first.job()), run_after_the_wait)
    assert first.steps == waited.steps == ["prepare", "perform", "finish"]


@pytest.mark.slow
def test_twenty_concurrent_two_phase_jobs_run_once(shop: Shop) -> None:
    recorded = Recorded()
    answers = run_concurrently(*[lambda: services.run_once(keyed_request(shop), recorded.job())] * 20)
    assert recorded.steps == ["prepare", "perform", "finish"]
    assert len({answer.body for answer in answers}) == 1
