"""A job that commits twice around a call: its key is under way in between."""

from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
import time_machine

from core import clock
from core.http import Answer
from idempotency import services
from idempotency.errors import IdempotencyKeyInProgress, IdempotencyKeyReused
from idempotency.fingerprints import Fingerprint
from idempotency.keys import Claim
from idempotency.models import UNDER_WAY, IdempotencyKey
from idempotency.services import TwoPhases
from tests.conftest import Shop, open_shop
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


class Crash(Exception):
    """The process is gone."""


class Refused(Exception):
    """No slot is free."""


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

    def job(self) -> TwoPhases[str]:
        return TwoPhases(
            subject_id=self.subject_id,
            seconds=self.seconds,
            admit=self._admit,
            prepare=lambda: self._step("prepare"),
            perform=self._perform,
            finish=lambda said: Answer.of({"after": said, "at": self._step("finish")}, self.status),
            resume=lambda subject_id: Answer.of({"as it stands": subject_id}),
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


def claim(shop: Shop, body: str = "a") -> Claim:
    print_ = Fingerprint.of(method="POST", operation="pay", body=body)
    return Claim(shop.merchant, "k", print_, clock.now())


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop("Somtam House")


def test_the_three_steps_run_once_and_the_answer_is_kept(shop: Shop) -> None:
    recorded = Recorded()
    first = services.run_once(claim(shop), recorded.job())
    again = services.run_once(claim(shop), recorded.job())
    assert recorded.steps == ["prepare", "perform", "finish"]
    assert again == Answer(200, first.body, {"Idempotent-Replayed": "true"})
    assert services.look_up(claim(shop)) == again


@pytest.mark.parametrize(("status", "is_kept"), [(200, True), (402, True), (400, False), (404, False)])
def test_only_what_left_something_behind_keeps_its_key(shop: Shop, status: int, is_kept: bool) -> None:
    services.run_once(claim(shop), Recorded(status=status).job())
    assert IdempotencyKey.objects.exists() == is_kept


def test_a_crash_before_the_first_commit_leaves_nothing(shop: Shop) -> None:
    with pytest.raises(Crash):
        services.run_once(claim(shop), Recorded(crash_in="prepare").job())
    assert not IdempotencyKey.objects.exists()


@pytest.mark.parametrize("step", ["perform", "finish"])
def test_after_a_crash_in_between_the_key_answers_how_things_stand(shop: Shop, step: str) -> None:
    with pytest.raises(Crash):
        services.run_once(claim(shop), Recorded(crash_in=step).job())
    assert IdempotencyKey.objects.get().status == UNDER_WAY
    assert services.look_up(claim(shop)) is None
    later = Recorded(seconds=0.0)
    answer = services.run_once(claim(shop), later.job())
    assert (answer.body, answer.headers) == (b'{"as it stands":"pay_1"}', {"Idempotent-Replayed": "true"})
    assert later.steps == []


def test_a_duplicate_waits_only_so_long(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "PATIENCE_SECONDS", 0.2)
    with pytest.raises(Crash):
        services.run_once(claim(shop), Recorded(crash_in="perform").job())
    with pytest.raises(IdempotencyKeyInProgress) as refused:
        services.run_once(claim(shop), Recorded().job())
    assert refused.value.retry_after == 1


def test_request_without_a_slot_is_refused_and_its_key_stays_free(shop: Shop) -> None:
    crowded = Recorded(is_admitted=False)
    with pytest.raises(Refused):
        services.run_once(claim(shop), crowded.job())
    with pytest.raises(Refused):
        services.run_without_key(crowded.job())
    assert crowded.steps == [] and not IdempotencyKey.objects.exists()
    assert services.run_once(claim(shop), Recorded().job()).status == 200


def test_repeat_of_a_request_under_way_needs_no_slot(shop: Shop) -> None:
    with pytest.raises(Crash):
        services.run_once(claim(shop), Recorded(crash_in="perform").job())
    answer = services.run_once(claim(shop), Recorded(seconds=0.0, is_admitted=False).job())
    assert answer.headers == {"Idempotent-Replayed": "true"}


@pytest.mark.parametrize("crash_in", ["", "prepare", "perform", "finish"])
def test_slot_is_given_back_however_the_request_ends(shop: Shop, crash_in: str) -> None:
    recorded = Recorded(crash_in=crash_in)
    with pytest.raises(Crash) if crash_in else nullcontext():
        services.run_once(claim(shop), recorded.job())
    assert recorded.admitted == 0


def test_repeats_beyond_the_share_of_a_merchant_wait_only_briefly(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each that waits holds a thread of the web server."""
    monkeypatch.setattr(services, "SHORT_PATIENCE_SECONDS", 0.2)
    with pytest.raises(Crash):
        services.run_once(claim(shop), Recorded(crash_in="perform").job())
    share = services.WAITING_OF_MERCHANT
    with ExitStack() as held:
        for _ in range(share):
            held.enter_context(services._waiting.held(shop.merchant.id, total=share, share=share))
        with pytest.raises(IdempotencyKeyInProgress):
            services.run_once(claim(shop), Recorded().job())


def test_another_request_under_the_key_is_refused_while_the_first_is_under_way(shop: Shop) -> None:
    with pytest.raises(Crash):
        services.run_once(claim(shop), Recorded(crash_in="perform").job())
    with pytest.raises(IdempotencyKeyReused):
        services.run_once(claim(shop, "b"), Recorded().job())
    with pytest.raises(IdempotencyKeyReused):
        services.look_up(claim(shop, "b"))


def test_an_answer_that_comes_when_the_key_is_anothers_is_not_stored_with_it(shop: Shop) -> None:
    """The key expired while the call was under way, and was taken for something else."""
    first = claim(shop)
    with time_machine.travel(clock.now() + timedelta(hours=24), tick=False):
        second = claim(shop, "b")
    other = Recorded(subject_id="pay_2")
    services.run_once(first, Recorded(during=lambda: services.run_once(second, other.job())).job())
    assert IdempotencyKey.objects.get().subject_id == "pay_2"
    assert services.look_up(second) is not None


def test_twenty_at_once_run_it_once(shop: Shop) -> None:
    recorded = Recorded()
    answers = at_once(*[lambda: services.run_once(claim(shop), recorded.job())] * 20)
    assert recorded.steps == ["prepare", "perform", "finish"]
    assert len({answer.body for answer in answers}) == 1
