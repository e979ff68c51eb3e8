"""A later report of known money adds missing payer details and changes nothing else."""

from datetime import datetime
from functools import partial
from typing import Any

import pytest

from audit_trail.acts import ActRefused
from core import clock
from payments.models import Payment
from reconciliation.models import BankTransaction
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, new_client, open_shop
from tests.reconciliation.builders import Seller, apply_inquiry_answer, decide, state_of
from tests.reconciliation.statements.statement_files import (
    bot_file,
    confirm_all_transactions,
    credit_line,
    import_file,
)
from tests.sqlstates import NOT_ALLOWED, sqlstate
from transfers.models import Transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
ACCOUNT = "1234567890"
NO_PAYER = {"payer_name": "", "payer_bank_code": "", "payer_account": ""}


@pytest.fixture
def code(seller: Seller) -> dict[str, Any]:
    return seller.shop.qr_code()


@pytest.fixture
def paid_at() -> datetime:
    """Now in whole seconds, as in statements."""
    return clock.now().replace(microsecond=0)


def by_line(code: dict[str, Any], paid_at: datetime, **changes: Any) -> BankTransaction:
    import_file(bot_file(credit_line(code, paid_at, **changes)))
    made: BankTransaction = BankTransaction.objects.get()
    return made


def payer_of(of: BankTransaction | Payment) -> tuple[str | None, str | None, str | None]:
    of.refresh_from_db()
    return of.payer_name, of.payer_bank_code, of.payer_account


@pytest.mark.slow
def test_refund_of_a_statement_payment_goes_to_payer_of_later_notification(
    seller: Seller, code: dict[str, Any], paid_at: datetime
) -> None:
    bank_transaction, payment = by_line(code, paid_at, name=""), Payment.objects.get()
    assert (state_of(bank_transaction), payer_of(payment)) == (("applied", ""), (None, "014", None))
    assert seller.bank.notify(code, paid_at=paid_at, transaction_id="THEBANKSOWNID0000000").status_code == 200
    assert payer_of(bank_transaction) == payer_of(payment) == ("Somchai Jaidee", "014", ACCOUNT)
    assert payment.bank_reference == "THEBANKSOWNID0000000"
    made = seller.refund(code["payment_id"])
    assert (made["status"], made["pending_reason"]) == ("pending", "processing")
    order = Transfer.objects.get(pk=made["refund_id"])
    assert (order.bank_code, order.account, order.account_name) == ("014", ACCOUNT, "Somchai Jaidee")


@pytest.mark.slow
def test_return_of_statement_money_goes_to_payer_of_later_notification(
    seller: Seller, code: dict[str, Any], paid_at: datetime
) -> None:
    bank_transaction = by_line(code, paid_at, ref1="NOBODYKNOWSTHIS00000", name="")
    confirm_all_transactions()
    with pytest.raises(ActRefused, match="did not report the payer's account"):
        decide("send_back", bank_transaction)
    seller.bank.notify(code, paid_at=paid_at, reference1="NOBODYKNOWSTHIS00000")
    made = decide("send_back", bank_transaction)
    order = Transfer.objects.get(pk=made.id)
    assert (order.bank_code, order.account, order.account_name) == ("014", ACCOUNT, "Somchai Jaidee")


def test_notification_adds_payer_to_payment_found_by_inquiry(seller: Seller, code: dict[str, Any]) -> None:
    notification = seller.bank.notification(code) | {"slip_reference": "2026112100000000001"}
    bank_transaction = apply_inquiry_answer(notification, **NO_PAYER, slip_reference="")
    payment = Payment.objects.get()
    assert payer_of(bank_transaction) == ("", "", "") and payer_of(payment) == (None, None, None)
    seller.bank.post(notification)
    assert payer_of(bank_transaction) == payer_of(payment) == ("Somchai Jaidee", "014", ACCOUNT)
    assert (bank_transaction.slip_reference, BankTransaction.objects.count()) == ("2026112100000000001", 1)


@pytest.mark.slow
def test_payer_details_are_never_overwritten(seller: Seller, code: dict[str, Any], paid_at: datetime) -> None:
    bank_transaction, payment = by_line(code, paid_at, name="MS MALEE"), Payment.objects.get()
    seller.bank.notify(code, paid_at=paid_at)
    assert payer_of(bank_transaction) == payer_of(payment) == ("MS MALEE", "014", ACCOUNT)
    notification = seller.bank.notification(
        code, paid_at=paid_at, transaction_id=bank_transaction.later_bank_reference
    )
    seller.bank.post(notification | {"payer_name": "SOMEBODY", "payer_account": "9999999999"})
    assert payer_of(bank_transaction) == payer_of(payment) == ("MS MALEE", "014", ACCOUNT)


@pytest.mark.slow
def test_payer_account_is_not_added_to_another_payer_bank(
    seller: Seller, code: dict[str, Any], paid_at: datetime
) -> None:
    bank_transaction, payment = by_line(code, paid_at, payer_bank="004", name=""), Payment.objects.get()
    seller.bank.notify(code, paid_at=paid_at)
    assert (payer_of(bank_transaction), payer_of(payment)) == (
        ("Somchai Jaidee", "004", ""),
        ("Somchai Jaidee", "004", None),
    )


def test_contradicting_notification_adds_no_payer_details(seller: Seller, code: dict[str, Any]) -> None:
    notification = seller.bank.notification(code)
    bank_transaction = apply_inquiry_answer(notification, **NO_PAYER)
    seller.bank.post(notification | {"amount": "1.00"})
    assert payer_of(bank_transaction) == ("", "", "")


@pytest.mark.slow
def test_expected_payer_is_compared_with_payer_reported_later(seller: Seller, paid_at: datetime) -> None:
    code = seller.shop.qr_code(client_bank_account="405-1-23456-7")
    by_line(code, paid_at, name="")
    assert Payment.objects.get().payer_matches == "unknown"
    seller.bank.notify(code, paid_at=paid_at)
    assert Payment.objects.get().payer_matches == "no"


def test_database_allows_only_missing_payer_details_to_be_added(
    seller: Seller, code: dict[str, Any], paid_at: datetime
) -> None:
    bank_transaction = by_line(code, paid_at, name="", payer_bank="")
    update = "UPDATE reconciliation_banktransaction SET {} WHERE id = %s"
    account = "payer_account_sealed = '{}', payer_account_digest = '014'"
    assert sqlstate(update.format("payer_account_sealed = '014'"), bank_transaction.id) == NOT_ALLOWED
    for change in ("payer_name = '{}'", "payer_bank_code = '{}'", account, "slip_reference = '{}'"):
        assert sqlstate(update.format(change.format("014")), bank_transaction.id) is None
        for other in ("015", ""):
            assert sqlstate(update.format(change.format(other)), bank_transaction.id) == NOT_ALLOWED


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_concurrent_payer_details_are_stored_from_one_report_only() -> None:
    seller = Seller(open_shop("Race"), SandboxBankClient(new_client()))
    for _ in range(10):
        notification = seller.bank.notification(seller.shop.qr_code())
        bank_transaction = apply_inquiry_answer(notification, **NO_PAYER)
        one = {"payer_name": "ONE", "payer_bank_code": "014", "payer_account": "1111111111"}
        two = {"payer_name": "TWO", "payer_bank_code": "004", "payer_account": "2222222222"}
        run_concurrently(
            *[partial(SandboxBankClient(new_client()).post, notification | payer) for payer in (one, two)]
        )
        assert payer_of(bank_transaction) == payer_of(Payment.objects.get(pk=bank_transaction.payment_id))
        assert payer_of(bank_transaction) in [tuple(one.values()), tuple(two.values())]
