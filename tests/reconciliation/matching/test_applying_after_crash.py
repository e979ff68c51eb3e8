"""A bank transaction that cannot be applied at once is stored whole and applied by the sweep."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread

import pytest
from django.db import connection, transaction

from core import clock
from core.database import rows
from ledger import accounts
from ledger.models import Account, Journal
from payments.models import Payment
from reconciliation.matching import services as matching
from reconciliation.models import BankNotification, BankTransaction
from tests.conftest import SandboxBankClient, new_client, open_shop
from tests.reconciliation.builders import Seller, reversal_of, state_of, suspense
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file, minutes_ago

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]
LATER = timedelta(seconds=5)


@pytest.fixture
def seller() -> Iterator[Seller]:
    """A shop whose requests wait at most 100 ms for a lock."""
    rows.run("SET lock_timeout = '100ms'", [])
    yield Seller(open_shop("Busy"), SandboxBankClient(new_client()))
    connection.close()


@contextmanager
def held(table: str, row_id: str) -> Iterator[None]:
    """Another transaction holds the lock of this row."""
    is_locked, may_end = Event(), Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                rows.run(f"SELECT FROM {table} WHERE id = %s FOR NO KEY UPDATE", [row_id])
                is_locked.set()
                may_end.wait(timeout=60)
        finally:
            connection.close()

    holder = Thread(target=hold)
    holder.start()
    assert is_locked.wait(timeout=60)
    try:
        yield
    finally:
        may_end.set()
        holder.join()


def test_bank_transaction_of_a_locked_payment_is_applied_by_the_next_run(seller: Seller) -> None:
    code = seller.shop.qr_code()
    with held("payments_payment", code["payment_id"]):
        assert seller.bank.notify(code).json() == {"status": "received"}
        assert matching.apply_unapplied(now=clock.now() + LATER) == 0
    bank_transaction = BankTransaction.objects.get()
    assert (state_of(bank_transaction), Journal.objects.count()) == (("", ""), 0)
    assert matching.apply_unapplied(now=clock.now() + LATER) == 1
    assert (state_of(bank_transaction)[0], seller.balance()) == ("applied", (150_000, 0))


@pytest.mark.parametrize("locked", ["balance", "payment", "credit"])
def test_failed_reversal_posts_nothing(seller: Seller, locked: str) -> None:
    credit = seller.sale()
    row = {
        "balance": (Account._meta.db_table, accounts.available(seller.shop.merchant.id)),
        "payment": (Payment._meta.db_table, str(credit.payment_id)),
        "credit": (BankTransaction._meta.db_table, credit.id),
    }[locked]
    with held(*row):
        reversal = seller.reverse(credit)
    assert (state_of(reversal), Payment.objects.get().status) == (("", ""), "succeeded")
    assert (seller.funds(), seller.history()) == ({"available": 150_000, "reserved": 0}, [])
    assert matching.apply_unapplied(now=clock.now() + LATER) == 1
    assert (state_of(reversal)[0], seller.funds()) == ("reversed", {"available": 0, "reserved": 0})


def test_reversal_of_held_money_waits_for_the_row_lock(seller: Seller) -> None:
    credit = seller.unmatched()
    with held(Account._meta.db_table, accounts.SANDBOX_SUSPENSE):
        reversal = seller.reverse(credit)
        seller.unmatched()
    assert (state_of(reversal), state_of(credit)) == (("", ""), ("unmatched", ""))
    assert suspense() == 300_000
    matching.apply_unapplied(now=clock.now() + LATER)
    assert (state_of(reversal)[0], state_of(credit)[1], suspense()) == ("reversed", "taken_back", 150_000)


def test_credit_and_reversal_left_by_a_crash_cancel_out(seller: Seller) -> None:
    code = seller.shop.qr_code()
    with held("payments_payment", code["payment_id"]):
        seller.bank.notify(code)
        seller.bank.post(reversal_of(BankTransaction.objects.get()))
    matching.apply_unapplied(now=clock.now() + LATER)
    assert sorted(BankTransaction.objects.values_list("match_result", flat=True)) == ["applied", "reversed"]
    assert (seller.funds(), Payment.objects.get().status) == ({"available": 0, "reserved": 0}, "refunded")


def test_notification_with_unrepairable_failure_is_not_acknowledged(seller: Seller) -> None:
    """A notification names the credit that a reversal waits for, while the payment is locked."""
    code, paid_at = seller.shop.qr_code(), clock.now().replace(microsecond=0)
    import_file(bot_file(credit_line(code, minutes_ago(1)), credit_line(code, paid_at)))
    second = BankTransaction.objects.get(match_result="duplicate")
    reversal = seller.reverse(second, transaction_id="THEBANKSOWNID0000000")
    named = seller.bank.notification(code, paid_at=second.paid_at, transaction_id="THEBANKSOWNID0000000")
    with held("payments_payment", code["payment_id"]):
        assert seller.bank.post(named).status_code == 503
    assert (state_of(reversal), BankNotification.objects.count()) == (("unmatched", ""), 2)
    assert seller.bank.post(named).json() == {"status": "received"}
    assert (state_of(reversal), suspense()) == (("reversed", ""), 0)


def test_payer_details_for_a_locked_bank_transaction_are_not_acknowledged(seller: Seller) -> None:
    code, paid_at = seller.shop.qr_code(), clock.now().replace(microsecond=0)
    import_file(bot_file(credit_line(code, paid_at, name="")))
    notification = seller.bank.notification(code, paid_at=paid_at)
    seller.bank.post(notification | {"payer_name": ""})
    bank_transaction = BankTransaction.objects.get()
    with held("reconciliation_banktransaction", bank_transaction.id):
        assert seller.bank.post(notification).status_code == 503
    bank_transaction.refresh_from_db()
    assert (bank_transaction.payer_name, BankNotification.objects.count()) == ("", 2)
    seller.bank.post(notification)
    bank_transaction.refresh_from_db()
    assert bank_transaction.payer_name == Payment.objects.get().payer_name == "Somchai Jaidee"
