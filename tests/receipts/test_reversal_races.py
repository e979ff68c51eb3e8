"""Reversals beside other money movements of the same merchant: real threads, each with its own connection."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from banks import Word
from core import clock
from receipts import inbox
from receipts import services as receipts
from refunds.models import Refund
from tests.conftest import BankCaller, new_client, open_shop
from tests.receipts.cast import Till, parsed, reversal_of
from tests.threads import at_once
from tests.transfers.cast import Bank
from tests.withdrawals.cast import ACCOUNT, PATH, withdrawn, work
from transactions import ledger
from transfers.models import Transfer
from withdrawals import services as withdrawals

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("books_are_right")]
REVERSALS, WITHDRAWALS, THREADS, ROUNDS = 20, 240, 8, 200


@pytest.fixture
def till(settings: Any) -> Till:
    settings.RATE_LIMIT = 0
    return Till(open_shop("Race"), BankCaller(new_client()))


def in_turn(actions: list[Callable[[], object]]) -> Callable[[], int]:
    """Run the actions one after the other and return how many there were."""
    return lambda: len([action() for action in actions])


@pytest.mark.slow
def test_reversals_with_waiting_refunds_beside_withdrawals_never_deadlock(till: Till) -> None:
    credits = [till.sold(10_000) for _ in range(REVERSALS)]
    for credit in credits:
        till.refund(str(credit.payment_id), amount=6_000)
    reversals = [_stored(reversal_of(credit)) for credit in credits]
    till.sold(WITHDRAWALS * 100 + REVERSALS * 10_000)

    def reverse(receipt_id: str) -> None:
        receipts.apply(receipt_id=receipt_id, now=clock.now())

    def withdraw() -> None:
        withdrawals.create(
            merchant=till.shop.merchant,
            now=clock.now(),
            amount=100,
            bank_code="014",
            bank_account=ACCOUNT,
            account_name="Somchai",
        )

    players = [
        in_turn([partial(reverse, each) for each in reversals[start::THREADS]]) for start in range(THREADS)
    ]
    players += [in_turn([withdraw] * (WITHDRAWALS // THREADS)) for _ in range(THREADS)]
    assert sum(at_once(*players)) == REVERSALS + WITHDRAWALS
    assert not Refund.objects.filter(status="pending").exists()
    held = ledger.balance(till.shop.merchant.id)
    assert (held.available, held.reserved, held.owed) == (REVERSALS * 10_000, WITHDRAWALS * 100, 0)


def _stored(notice: dict[str, Any]) -> str:
    """Store what the bank tells, as the first commit of its request does; the reversal is not applied yet."""
    return str(inbox.accept(bank="sandbox", body=b"{}", notice=parsed(notice), now=clock.now()).id)


@pytest.mark.slow
def test_no_withdrawal_is_submitted_after_the_reversal_of_its_money_committed(
    till: Till, served_by: Callable[..., Bank]
) -> None:
    bank = served_by(sends=[Word("processing", "b-1")])
    outcomes: Counter[bool] = Counter()
    for number in range(ROUNDS):
        shop = open_shop(f"Round {number}")
        credit = Till(shop, till.bank).sold(10_000)
        made = withdrawn(shop, amount=10_000)
        receipt_id = _stored(reversal_of(credit))
        at_once(partial(receipts.apply, receipt_id=receipt_id, now=clock.now()), work)
        owes = ledger.balance(shop.merchant.id).owed
        was_sent = made["withdrawal_id"] in bank.sent
        # Both are possible. But whatever is not submitted now never is: the reversal is committed.
        ours = Transfer.objects.filter(pk=made["withdrawal_id"], state="queued")
        assert ours.update(due_at=clock.now(), lease_until=None) == (not was_sent)
        work()
        assert (owes, made["withdrawal_id"] in bank.sent) == (10_000, was_sent)
        canceled = shop.post(f"{PATH}/{made['withdrawal_id']}/cancel")
        assert canceled.status_code == (400 if was_sent else 200)
        outcomes[was_sent] += 1
    assert min(outcomes[True], outcomes[False]) > 0
