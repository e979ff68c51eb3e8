"""Concurrent reversals, refunds and withdrawals of one merchant, in threads."""

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from banks import TransferResult
from core import clock
from ledger import services as ledger
from reconciliation.matching import intake, services as matching
from refunds.models import Refund
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, new_client, open_shop
from tests.examples import examples
from tests.reconciliation.builders import Seller, parse, reversal_of
from tests.transfers.builders import Bank
from tests.withdrawals.builders import ACCOUNT, PATH, send_due_withdrawals, withdrawn
from transfers.models import Transfer
from withdrawals import services as withdrawals

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]
REVERSALS, WITHDRAWALS, THREADS, ROUNDS = 20, 240, 8, examples(200)
STEP = 0.004  # seconds


@pytest.fixture
def seller(settings: Any) -> Seller:
    settings.RATE_LIMIT = 0
    return Seller(open_shop("Race"), SandboxBankClient(new_client()))


def in_turn(actions: list[Callable[[], object]]) -> Callable[[], int]:
    """Run the actions one after the other and return how many there were."""
    return lambda: len([action() for action in actions])


def test_reversals_refunds_and_withdrawals_never_deadlock(seller: Seller) -> None:
    credits = [seller.sale(10_000) for _ in range(REVERSALS)]
    for credit in credits:
        seller.refund(str(credit.payment_id), amount=6_000)
    reversals = [_stored(reversal_of(credit)) for credit in credits]
    seller.sale(WITHDRAWALS * 100 + REVERSALS * 10_000)

    def reverse(bank_transaction_id: str) -> None:
        matching.apply(bank_transaction_id=bank_transaction_id, now=clock.now())

    def withdraw() -> None:
        withdrawals.create(
            merchant=seller.shop.merchant,
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
    assert sum(run_concurrently(*players)) == REVERSALS + WITHDRAWALS
    assert not Refund.objects.filter(status="pending").exists()
    held = ledger.balance(seller.shop.merchant.id)
    assert (held.available, held.reserved, held.debt) == (REVERSALS * 10_000, WITHDRAWALS * 100, 0)


def _stored(notification: dict[str, Any]) -> str:
    """Store a notification without applying it, as the first commit of its request does."""
    return str(
        intake.receive(bank="sandbox", body=b"{}", notification=parse(notification), now=clock.now()).id
    )


def _after(seconds: float, action: Callable[[], object]) -> Callable[[], object]:
    def run() -> object:
        time.sleep(max(0.0, seconds))
        return action()

    return run


def test_withdrawal_is_not_submitted_after_reversal_of_the_money(
    seller: Seller, served_by: Callable[..., Bank]
) -> None:
    bank = served_by(sends=[TransferResult("processing", "b-1")])
    outcomes: Counter[bool] = Counter()
    head_start = 0.01  # seconds of the reversal before the order; negative: of the order
    for number in range(ROUNDS):
        shop = open_shop(f"Round {number}")
        credit = Seller(shop, seller.bank).sale(10_000)
        made = withdrawn(shop, amount=10_000)
        bank_transaction_id = _stored(reversal_of(credit))
        reverse = partial(matching.apply, bank_transaction_id=bank_transaction_id, now=clock.now())
        run_concurrently(_after(-head_start, reverse), _after(head_start, send_due_withdrawals))
        owes = ledger.balance(shop.merchant.id).debt
        was_sent = made["withdrawal_id"] in bank.sent
        # Both results are possible. But an order that is not submitted by now never is.
        ours = Transfer.objects.filter(pk=made["withdrawal_id"], state="queued")
        assert ours.update(due_at=clock.now(), lease_until=None) == (not was_sent)
        send_due_withdrawals()
        assert (owes, made["withdrawal_id"] in bank.sent) == (10_000, was_sent)
        canceled = shop.post(f"{PATH}/{made['withdrawal_id']}/cancel")
        assert canceled.status_code == (400 if was_sent else 200)
        outcomes[was_sent] += 1
        # Whoever was late starts earlier the next time, so that the two meet on every machine.
        head_start += STEP if was_sent else -STEP
    assert min(outcomes[True], outcomes[False]) > 0
