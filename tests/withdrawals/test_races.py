"""Concurrent withdrawals: no balance is spent twice, and each is sent once or canceled."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import transaction

from banks import TransferResult
from core import clock, ids
from ledger import services as ledger
from ledger.errors import InsufficientFunds
from ledger.journal_types import JournalType
from ledger.models import Entry
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, new_client, open_shop
from tests.transfers.builders import Bank
from tests.withdrawals.builders import (
    PATH,
    balance,
    events_of,
    fund,
    send_due_withdrawals,
    sent_out,
    withdrawal_request,
    withdrawn,
)
from webhooks.models import Event
from withdrawals.models import Withdrawal, WithdrawalStatus

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
in_clean_audit = pytest.mark.usefixtures("audit_is_clean")
CLIENTS = 32
SUM, PIECE = 5_000_000, 130_000
FIT = SUM // PIECE


@pytest.fixture
def shop(bank: SandboxBankClient) -> Shop:
    shop = open_shop("Race")
    for _ in range(5):
        fund(shop, bank, SUM // 5)
    return shop


def own(shop: Shop) -> Shop:
    return Shop(shop.merchant, shop.secret_key, new_client())


def asking(shop: Shop, number: int, times: int = 2) -> Callable[[], list[Any]]:
    """A client that requests `times` withdrawals, each twice with the same idempotency key."""
    client = own(shop)

    def ask() -> list[Any]:
        keys = [f"client-{number}-{turn}" for turn in range(times) for _ in range(2)]
        return [client.post(PATH, withdrawal_request(amount=PIECE), key=key) for key in keys]

    return ask


def check_books(shop: Shop) -> None:
    """Entries sum to zero, and the balance lacks exactly the money that was sent."""
    lines = Entry.objects.values_list("account_id", "amount")
    assert sum(amount for _, amount in lines) == 0
    succeeded = Withdrawal.objects.filter(status=WithdrawalStatus.SUCCEEDED)
    out = sum(succeeded.values_list("amount", flat=True))
    assert sent_out() == out - SUM
    assert sum(balance(shop)) == SUM - out


@in_clean_audit
def test_concurrent_withdrawals_never_exceed_the_balance(shop: Shop, served_by: Serving) -> None:
    bank = served_by(sends=[TransferResult("succeeded", "b-1")])
    answers = [
        each
        for client_results in run_concurrently(*[asking(shop, n) for n in range(CLIENTS)])
        for each in client_results
    ]
    assert Counter(answer.status_code for answer in answers) == {200: 2 * FIT, 402: 4 * CLIENTS - 2 * FIT}
    made = {answer.json()["withdrawal_id"] for answer in answers if answer.status_code == 200}
    assert len(made) == FIT == Withdrawal.objects.count()
    assert balance(shop) == (SUM - FIT * PIECE, FIT * PIECE)
    check_books(shop)
    run_concurrently(*[send_due_withdrawals] * 4)
    assert sorted(bank.sent) == sorted(made)
    assert balance(shop) == (SUM - FIT * PIECE, 0)
    assert sent_out() == FIT * PIECE - SUM
    assert Event.objects.filter(type__startswith="withdrawal.").count() == 3 * FIT
    check_books(shop)


@in_clean_audit
def test_concurrent_requests_with_one_key_create_one_withdrawal(shop: Shop) -> None:
    asked = withdrawal_request(amount=PIECE)
    answers = run_concurrently(*[partial(own(shop).post, PATH, asked, key="one") for _ in range(20)])
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert Withdrawal.objects.count() == 1
    assert balance(shop) == (SUM - PIECE, PIECE)


def test_concurrent_withdrawals_and_refunds_share_one_balance(shop: Shop) -> None:
    def refund() -> list[int]:
        """Reserve money as a refund does; return the satang."""
        at = clock.now()
        try:
            with transaction.atomic():
                ledger.reserve(
                    merchant_id=shop.merchant.id,
                    type=JournalType.REFUND_RESERVED,
                    subject_id=ids.new("ref_", at),
                    amount=PIECE,
                    now=at,
                )
        except InsufficientFunds:
            return [0]
        return [PIECE]

    # Neither alone can take all there is: 16 refunds, 32 withdrawals.
    refunds = [refund] * (CLIENTS // 2)
    results = run_concurrently(*refunds, *[asking(shop, n) for n in range(CLIENTS // 2)])
    refunded = sum(satang for client_results in results[: len(refunds)] for satang in client_results)
    withdrawn_ = sum(Withdrawal.objects.values_list("amount", flat=True))
    assert refunded + withdrawn_ == FIT * PIECE
    assert min(refunded, withdrawn_) > 0
    assert balance(shop) == (SUM - FIT * PIECE, FIT * PIECE)


@in_clean_audit
def test_concurrent_payments_and_withdrawals_add_up(shop: Shop, bank: SandboxBankClient) -> None:
    codes = [shop.qr_code(amount=100_000) for _ in range(40)]
    payers = [SandboxBankClient(new_client()) for _ in range(8)]

    def pay(payer: SandboxBankClient, mine: list[Any]) -> list[Any]:
        return [payer.notify(code) for code in mine]

    paying = [partial(pay, payer, codes[n::8]) for n, payer in enumerate(payers)]
    answers = run_concurrently(*paying, *[asking(shop, n, 4) for n in range(8)])
    assert {answer.status_code for client_results in answers for answer in client_results} <= {200, 402}
    reserved = sum(Withdrawal.objects.values_list("amount", flat=True))
    assert balance(shop) == (SUM + 4_000_000 - reserved, reserved)
    assert reserved == 32 * PIECE


@in_clean_audit
@pytest.mark.parametrize("_", range(10))
def test_concurrent_cancel_and_send_of_a_withdrawal_have_one_outcome(
    shop: Shop, served_by: Serving, _: int
) -> None:
    bank = served_by(sends=[TransferResult("succeeded", "b-1")])
    made = withdrawn(shop, amount=PIECE)
    path = f"{PATH}/{made['withdrawal_id']}/cancel"
    answers = run_concurrently(
        *[partial(own(shop).post, path) for _ in range(3)], *[send_due_withdrawals] * 3
    )
    canceled = [answer.status_code for answer in answers if answer is not None]
    status = Withdrawal.objects.get().status
    if 200 in canceled:
        assert (sorted(canceled), status, bank.sent) == ([200, 400, 400], "canceled", [])
        assert (balance(shop), events_of(made)) == ((SUM, 0), ["withdrawal.pending"])
    else:
        assert (canceled, status, len(bank.sent)) == ([400] * 3, "succeeded", 1)
        assert balance(shop) == (SUM - PIECE, 0)
    check_books(shop)
