"""Card payments that wait for their acquirer: how many at once, and for how long."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest
from pytest_django import Settings

from banks import parallel
from idempotency.models import IdempotencyKey
from payments import cards
from payments.models import CardCharge, Payment
from sandbox.acquirer_server import AcquirerServer
from sandbox.models import SandboxCharge
from tests import webhook_receiver
from tests.concurrency import run_concurrently
from tests.conftest import Shop, open_shop
from tests.payments.card_builders import PATH, error_of, events, inquire, request
from tests.tables import count_rows
from tests.webhook_receiver import Reply

CALLS = 4


@pytest.fixture(autouse=True)
def few_slots(settings: Settings) -> None:
    settings.CARD_CONCURRENCY = CALLS


@contextmanager
def under_way(shop: Shop, calls: int) -> Iterator[None]:
    """So many card payments of the shop wait for their acquirer in this process."""
    with ExitStack() as held:
        for _ in range(calls):
            held.enter_context(cards._calls.hold(shop.merchant.id, total=CALLS, share=CALLS))
        yield


@pytest.mark.parametrize("key", [None, "order-1"])
def test_card_payment_above_the_limit_of_a_merchant_is_a_503_and_stores_nothing(
    till: Shop, key: str | None
) -> None:
    before = count_rows()
    with under_way(till, CALLS // 2):
        refused = till.post(PATH, request(), key=key)
    assert error_of(refused) == (503, "too_many_card_payments", "api_error")
    assert int(refused.headers["Retry-After"]) >= 1
    assert count_rows() == before
    assert till.post(PATH, request(), key=key).json()["status"] == "succeeded"
    assert SandboxCharge.objects.count() == 1


def test_merchant_at_its_limit_leaves_slots_to_another_merchant(till: Shop) -> None:
    rival = open_shop("Larb Palace")
    with under_way(rival, CALLS // 2):
        assert till.post(PATH, request()).json()["status"] == "succeeded"


def test_card_payment_above_the_limit_of_the_process_is_refused(till: Shop) -> None:
    with under_way(open_shop("Larb Palace"), CALLS // 2), under_way(open_shop("Pad Thai"), CALLS // 2):
        assert error_of(till.post(PATH, request()))[:2] == (503, "too_many_card_payments")
    assert not Payment.objects.exists() and not SandboxCharge.objects.exists()


def test_stored_answer_is_replayed_although_no_slot_is_free(till: Shop) -> None:
    first = till.post(PATH, request(), key="order-1")
    with under_way(till, CALLS):
        again = till.post(PATH, request(), key="order-1")
    assert (again.status_code, again.content) == (200, first.content)


@pytest.mark.parametrize("token", ["tok_test_visa", "tok_test_declined", "tok_test_used", "tok_test_nothing"])
def test_every_outcome_gives_the_slot_back(till: Shop, token: str) -> None:
    for _ in range(CALLS):
        assert till.post(PATH, request(token)).status_code in (200, 400, 402)
    assert cards._calls.taken == 0


def test_repeats_that_come_at_once_need_one_slot(till: Shop) -> None:
    with under_way(till, CALLS // 2 - 1):
        answers = run_concurrently(*[partial(till.post, PATH, request(), key="order-1")] * 6)
    assert {answer.status_code for answer in answers} == {200}
    assert SandboxCharge.objects.count() == 1


def test_call_that_outlives_its_deadline_leaves_the_payment_pending(
    acquirer: AcquirerServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the adapter waits for: here its own limits are a minute."""
    monkeypatch.setattr(parallel, "CALL_SECONDS", 0.3)
    till, real = open_shop("Somtam House"), settings.SANDBOX_ACQUIRER_URL
    with webhook_receiver.running_receiver() as silent:
        silent.on("/charges", Reply(hangs=True))
        settings.SANDBOX_ACQUIRER_URL = silent.base_url
        answer = till.post(PATH, request(), key="order-1")
    assert (answer.status_code, answer.json()["status"]) == (200, "pending")
    assert (events(), CardCharge.objects.get().state) == (["payment.pending"], "pending")
    assert IdempotencyKey.objects.count() == 1
    settings.SANDBOX_ACQUIRER_URL = real
    monkeypatch.setattr(parallel, "CALL_SECONDS", 60.0)
    assert inquire() == 1
