"""From pending to how it ends: what the merchant sees, is told, and has."""

from collections.abc import Callable
from typing import Any

import pytest

from banks import OrderNotice, Word
from core import clock
from tests.conftest import Shop
from tests.transfers.cast import Bank, pass_time
from tests.withdrawals.cast import (
    PATH,
    balance,
    events_of,
    now_of,
    sent_out,
    told,
    withdrawal_request,
    withdrawn,
    work,
)
from transactions.models import Journal
from transfers import services as transfers
from withdrawals.services import OWNER
from withdrawals.tasks import run_due

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
PAID_IN = -150_000


def facts(withdrawal: dict[str, Any]) -> list[str]:
    happened = Journal.objects.filter(subject_id=withdrawal["withdrawal_id"]).order_by("id")
    return [str(fact) for fact in happened.values_list("fact", flat=True)]


def cancel(shop: Shop, withdrawal: dict[str, Any], key: str | None = None) -> Any:
    return shop.post(f"{PATH}/{withdrawal['withdrawal_id']}/cancel", key=key)


def test_it_is_sent_inquired_and_succeeds(shop: Shop, served_by: Serving) -> None:
    bank = served_by()
    made = withdrawn(shop, reference="PAYOUT-1", metadata={"week": 47})
    run_due()
    assert now_of(shop, made)["status"] == "processing"
    assert balance(shop) == (50_000, 100_000)
    work(2)
    ended = now_of(shop, made)
    assert (ended["status"], ended["bank_reference"], ended["failure_code"]) == ("succeeded", "b-1", None)
    assert ended["completed_at"] == ended["updated_at"] > ended["created_at"]
    assert (len(bank.sent), len(bank.inquired)) == (1, 1)
    assert (balance(shop), sent_out()) == ((50_000, 0), PAID_IN + 100_000)
    assert facts(made) == ["withdrawal_reserved", "withdrawal_paid"]
    assert events_of(made) == ["withdrawal.pending", "withdrawal.processed", "withdrawal.succeeded"]
    assert [body["data"]["status"] for body in told(made)] == ["pending", "processing", "succeeded"]
    assert told(made)[-1]["data"] == ended


@pytest.mark.parametrize("code", ["invalid_account", "rejected_by_bank"])
def test_what_the_bank_refuses_is_the_merchants_again(shop: Shop, served_by: Serving, code: str) -> None:
    served_by(sends=[Word("failed", failure_code=code)])
    made = withdrawn(shop)
    work()
    ended = now_of(shop, made)
    assert (ended["status"], ended["failure_code"], ended["completed_at"]) == ("failed", code, None)
    assert (balance(shop), sent_out()) == ((150_000, 0), PAID_IN)
    assert facts(made) == ["withdrawal_reserved", "withdrawal_released"]
    assert events_of(made) == ["withdrawal.pending", "withdrawal.processed", "withdrawal.failed"]
    assert told(made)[-1]["data"] == ended


def test_what_comes_back_after_it_had_arrived_is_the_merchants_again(shop: Shop, served_by: Serving) -> None:
    served_by(sends=[Word("succeeded", "b-1")])
    made = withdrawn(shop)
    work()
    arrived = now_of(shop, made)
    for _ in range(2):
        notice = OrderNotice(made["withdrawal_id"], "returned", "b-1", "account_closed")
        transfers.hear(notice, OWNER, now=clock.now())
    ended = now_of(shop, made)
    assert (ended["status"], ended["failure_code"]) == ("failed", "returned_by_bank")
    assert ended["completed_at"] == arrived["completed_at"]
    assert (balance(shop), sent_out()) == ((150_000, 0), PAID_IN)
    assert facts(made) == ["withdrawal_reserved", "withdrawal_paid", "withdrawal_returned"]
    assert events_of(made)[-2:] == ["withdrawal.succeeded", "withdrawal.failed"]


def test_a_return_that_is_heard_before_the_success_tells_of_both(shop: Shop, served_by: Serving) -> None:
    served_by()
    made = withdrawn(shop)
    work()
    transfers.hear(OrderNotice(made["withdrawal_id"], "returned", "b-1"), OWNER, now=clock.now())
    assert now_of(shop, made)["failure_code"] == "returned_by_bank"
    assert (balance(shop), sent_out()) == ((150_000, 0), PAID_IN)
    assert len(events_of(made)) == 4


def test_an_unknown_answer_is_inquired_and_never_sent_again(shop: Shop, served_by: Serving) -> None:
    unknown = Word("unknown")
    bank = served_by(
        sends=[unknown], inquiries=[unknown, Word("not_sent"), unknown, Word("succeeded", "b-1")]
    )
    made = withdrawn(shop)
    work(4)
    assert now_of(shop, made)["status"] == "processing"
    assert balance(shop) == (50_000, 100_000)
    pass_time()
    work()
    assert now_of(shop, made)["status"] == "succeeded"
    assert (bank.sent, len(bank.inquired)) == ([made["withdrawal_id"]], 4)


def test_a_bank_that_could_not_be_reached_is_told_later_and_the_merchant_once(
    shop: Shop, served_by: Serving
) -> None:
    bank = served_by(sends=[Word("not_sent"), Word("not_sent"), Word("succeeded", "b-1")])
    made = withdrawn(shop)
    work(2)
    assert cancel(shop, made).json()["error"]["code"] == "withdrawal_not_cancelable"
    work(3)
    assert now_of(shop, made)["status"] == "succeeded"
    assert len(bank.sent) == 3
    assert events_of(made) == ["withdrawal.pending", "withdrawal.processed", "withdrawal.succeeded"]


def test_a_pending_one_is_canceled_and_never_sent(shop: Shop, served_by: Serving) -> None:
    bank = served_by()
    made = withdrawn(shop)
    first, again = (cancel(shop, made, key="cancel") for _ in range(2))
    assert (first.json()["status"], first.json()["failure_code"]) == ("canceled", None)
    assert (again.content, again["Idempotent-Replayed"]) == (first.content, "true")
    work(2)
    assert (bank.sent, now_of(shop, made)) == ([], first.json())
    assert (balance(shop), sent_out()) == ((150_000, 0), PAID_IN)
    assert facts(made) == ["withdrawal_reserved", "withdrawal_released"]
    assert events_of(made) == ["withdrawal.pending"]


@pytest.mark.parametrize("word", [Word("processing"), Word("succeeded"), Word("failed")])
def test_once_the_bank_is_told_it_cannot_be_canceled(shop: Shop, served_by: Serving, word: Word) -> None:
    served_by(sends=[word])
    made = withdrawn(shop)
    work()
    before = now_of(shop, made)
    for answer in (cancel(shop, made), cancel(shop, made)):
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, "withdrawal_not_cancelable")
        assert before["status"] in error["message"]
    assert now_of(shop, made) == before


def test_what_is_canceled_is_not_canceled_twice(shop: Shop) -> None:
    made = withdrawn(shop)
    assert cancel(shop, made).status_code == 200
    assert cancel(shop, made).json()["error"]["code"] == "withdrawal_not_cancelable"
    assert balance(shop) == (150_000, 0)


def test_what_came_back_can_be_withdrawn_again(shop: Shop, served_by: Serving) -> None:
    served_by(sends=[Word("failed"), Word("succeeded", "b-2")])
    withdrawn(shop, amount=150_000)
    assert shop.post(PATH, withdrawal_request(amount=100)).status_code == 402
    work()
    made = withdrawn(shop, amount=150_000)
    work()
    assert now_of(shop, made)["status"] == "succeeded"
    assert (balance(shop), sent_out()) == ((0, 0), 0)


def test_a_step_that_breaks_is_taken_up_again_and_nothing_is_done_twice(
    shop: Shop, served_by: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = served_by(sends=[Word("succeeded", "b-1")], inquiries=[Word("succeeded", "b-1")])
    made = withdrawn(shop)
    with monkeypatch.context() as broken:
        broken.setattr("withdrawals.services.ledger.pay_out", lambda **_: 1 / 0)
        work()
    assert (now_of(shop, made)["status"], balance(shop)) == ("processing", (50_000, 100_000))
    assert events_of(made) == ["withdrawal.pending", "withdrawal.processed"]
    pass_time()
    work()
    assert now_of(shop, made)["status"] == "succeeded"
    assert (len(bank.sent), sent_out()) == (1, PAID_IN + 100_000)
    assert len(events_of(made)) == 3
