"""The lock of a merchant's limits comes before the accounts of the ledger, whatever asks for it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from approvals import payout_accounts
from approvals.models import Approval
from core import clock
from ledger import services as ledger
from tests.approvals.builders import MALEE, add_payout_account
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, new_client, open_shop
from tests.context import acting_as
from tests.reconciliation.builders import Seller
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file
from tests.withdrawals.builders import ACCOUNT, fund, withdrawn

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]
CLIENT = {"client_bank_name": "kbank", "client_bank_account": ACCOUNT, "client_name": "Somying"}
ROUNDS = 10


@pytest.fixture
def seller() -> Seller:
    """A shop that has money, and pays only to listed accounts."""
    shop, bank = open_shop("Somtam House"), SandboxBankClient(new_client())
    fund(shop, bank, 10_000_000)
    with acting_as(MALEE):
        payout_accounts.restrict(shop.merchant, True, now=clock.now())
    add_payout_account(shop)
    return Seller(shop, bank)


def callback_for_a_waiting_refund(seller: Seller) -> Callable[[], Any]:
    """Return a call of the bank that confirms money of a statement and queues its refund.

    The refund waits for a destination, because the payer's account is not on the list yet.
    """
    code, paid_at = seller.shop.qr_code(**CLIENT), clock.now().replace(microsecond=0)
    assert import_file(bot_file(credit_line(code, paid_at, name="", payer_bank=""))).is_clean
    refund = seller.refund(code["payment_id"])
    assert refund["pending_reason"] == "awaiting_destination"
    notification = seller.bank.notification(code, paid_at=paid_at, payer_bank_code="999")
    return partial(SandboxBankClient(new_client()).post, notification)


def test_callback_for_a_waiting_refund_locks_limits_before_accounts(seller: Seller) -> None:
    """The recorder in tests/lock_order.py fails this test if the order is wrong."""
    send_callback = callback_for_a_waiting_refund(seller)
    add_payout_account(seller.shop, bank_code="004")
    assert send_callback().status_code == 200
    assert list(Approval.objects.values_list("kind", "status")) == [("refund", "within_limits")]


def test_concurrent_waiting_refunds_and_withdrawals_never_deadlock(seller: Seller) -> None:
    callbacks = [callback_for_a_waiting_refund(seller) for _ in range(ROUNDS)]
    add_payout_account(seller.shop, bank_code="004")
    for send_callback in callbacks:
        answer, _ = run_concurrently(send_callback, *[partial(withdrawn, seller.shop, amount=100)] * 3)[:2]
        assert answer.status_code == 200
    assert Approval.objects.count() == ROUNDS * 4
    assert ledger.balance(seller.shop.merchant.id).reserved == ROUNDS * (150_000 + 300)
