"""What banks say at their door about money that we sent out."""

from collections.abc import Callable
from typing import Any

import pytest

from banks import Word
from core import clock
from receipts import orders
from receipts.models import Notice, Receipt
from tests.conftest import BankCaller
from tests.transfers.cast import Bank, Recorder, queued, work
from transfers import services as transfers
from transfers.models import Transfer

Serving = Callable[..., Bank]
pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    owner = Recorder()
    monkeypatch.setitem(orders.OWNERS, "wd", owner)
    return owner


@pytest.fixture
def transfer(owner: Recorder, monkeypatch: pytest.MonkeyPatch) -> Transfer:
    """The bank has it and did not say yet what became of it."""
    monkeypatch.setattr("banks.sender", lambda route, link=None: Bank(sends=[Word("processing")]))
    transfer = queued()
    work(owner)
    return transfer


def told(order_id: str, status: str = "succeeded") -> dict[str, Any]:
    return {
        "type": "order",
        "reference": order_id,
        "bank_reference": "sbo_1",
        "amount": "1500.00",
        "currency": "THB",
        "status": status,
        "reason": "account_closed" if status != "succeeded" else "",
    }


def verdicts() -> list[str]:
    return list(Notice.objects.order_by("received_at", "id").values_list("verdict", flat=True))


def test_a_notice_is_kept_and_settles_its_order(
    bank: BankCaller, owner: Recorder, transfer: Transfer
) -> None:
    answer = bank.post(told(transfer.id))
    transfer.refresh_from_db()
    notice = Notice.objects.get()
    assert (answer.status_code, answer.json()) == (200, {"status": "received"})
    assert (transfer.state, owner.settled) == ("succeeded", [(transfer.id, Word("succeeded", "sbo_1"))])
    assert (notice.verdict, notice.receipt) == ("new", None)
    assert transfer.id.encode() in notice.body
    assert not Receipt.objects.exists()


def test_a_repeat_changes_nothing(bank: BankCaller, owner: Recorder, transfer: Transfer) -> None:
    answers = [bank.post(told(transfer.id)) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {200}
    assert sorted(verdicts()) == ["new", "repeat", "repeat"]
    assert owner.fates == ["succeeded"]


def test_a_return_after_a_success_is_told_to_the_owner(
    bank: BankCaller, owner: Recorder, transfer: Transfer
) -> None:
    for status in ("succeeded", "returned", "returned"):
        bank.post(told(transfer.id, status))
    assert owner.fates == ["succeeded", "returned"]
    assert sorted(verdicts()) == ["new", "new", "repeat"]


def test_a_contradiction_waits_for_staff(bank: BankCaller, owner: Recorder, transfer: Transfer) -> None:
    bank.post(told(transfer.id, "failed"))
    answer = bank.post(told(transfer.id, "succeeded"))
    transfer.refresh_from_db()
    assert (answer.status_code, sorted(verdicts())) == (200, ["conflict", "new"])
    assert (transfer.state, owner.fates) == ("failed", ["failed"])


@pytest.mark.parametrize("order_id", ["wd_000000000000000000000000000", "ref_x", "chrg_17", "!"])
def test_an_order_that_nobody_gave_waits_for_staff(bank: BankCaller, owner: Recorder, order_id: str) -> None:
    answer = bank.post(told(order_id))
    assert (answer.status_code, verdicts(), owner.settled) == (200, ["conflict"], [])


def test_an_order_that_was_never_sent_waits_for_staff(bank: BankCaller, owner: Recorder) -> None:
    transfer = queued()
    bank.post(told(transfer.id))
    transfers.cancel(transfer.id, now=clock.now())
    bank.post(told(transfer.id))
    assert (verdicts(), owner.settled) == (["conflict", "conflict"], [])


def test_an_unreadable_notice_of_an_order_is_parked(bank: BankCaller) -> None:
    answer = bank.post(told("wd_000000000000000000000000000", "lost"))
    assert (answer.status_code, answer.json(), verdicts()) == (200, {"status": "parked"}, ["unreadable"])


def test_what_could_not_be_settled_is_told_again_by_the_bank(
    bank: BankCaller, owner: Recorder, transfer: Transfer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: object, **how: object) -> None:
        raise ValueError("the books are shut")

    with monkeypatch.context() as patch:
        patch.setattr(owner, "settle", fails)
        assert bank.post(told(transfer.id)).status_code == 500
    transfer.refresh_from_db()
    assert (transfer.state, verdicts()) == ("told", ["new"])
    assert bank.post(told(transfer.id)).status_code == 200
    assert owner.fates == ["succeeded"]
