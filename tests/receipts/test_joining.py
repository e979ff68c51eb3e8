"""A message of money that was known already brings what nobody had said of it, and changes nothing else."""

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from core import clock
from payments.models import Payment
from receipts import inbox, services
from receipts.acts import NotPossible
from receipts.models import Receipt, Source
from tests.conftest import BankCaller, new_client, open_shop
from tests.receipts.cast import Till, decide, now_of, parsed
from tests.receipts.statements.cast import bot, confirm_all, line_of, load
from tests.refunds.test_guard import NOT_ALLOWED, sqlstate
from tests.threads import at_once
from transfers.models import Transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
ACCOUNT = "1234567890"


@pytest.fixture
def code(till: Till) -> dict[str, Any]:
    return till.shop.qr_code()


@pytest.fixture
def paid_at() -> datetime:
    """Whole seconds, as statements tell them."""
    return clock.now().replace(microsecond=0)


def by_line(code: dict[str, Any], paid_at: datetime, **changes: Any) -> Receipt:
    load(bot(line_of(code, paid_at, **changes)))
    made: Receipt = Receipt.objects.get()
    return made


def by_inquiry(notice: dict[str, Any], **changes: Any) -> Receipt:
    """The bank answers what it tells of its own accord too, but not who paid."""
    told = replace(parsed(notice), **changes)
    receipt = inbox.accept(bank="sandbox", body=b"{}", notice=told, now=clock.now(), source=Source.INQUIRY)
    return services.apply(receipt_id=receipt.id, now=clock.now())


def payer_of(of: Receipt | Payment) -> tuple[str | None, str | None, str | None]:
    of.refresh_from_db()
    return of.payer_name, of.payer_bank_code, of.payer_account


def test_a_payment_that_a_line_told_is_refunded_to_whom_the_notice_names(
    till: Till, code: dict[str, Any], paid_at: datetime
) -> None:
    receipt, payment = by_line(code, paid_at, name=""), Payment.objects.get()
    assert (now_of(receipt), payer_of(payment)) == (("applied", ""), (None, "014", None))
    assert till.bank.tell(code, paid_at=paid_at, transaction_id="THEBANKSOWNID0000000").status_code == 200
    assert payer_of(receipt) == payer_of(payment) == ("Somchai Jaidee", "014", ACCOUNT)
    assert payment.bank_transaction_id == "THEBANKSOWNID0000000"
    made = till.refund(code["payment_id"])
    assert (made["status"], made["pending_reason"]) == ("pending", "processing")
    order = Transfer.objects.get(pk=made["refund_id"])
    assert (order.bank_code, order.account, order.account_name) == ("014", ACCOUNT, "Somchai Jaidee")


def test_money_that_a_line_told_goes_back_to_whom_the_notice_names(
    till: Till, code: dict[str, Any], paid_at: datetime
) -> None:
    receipt = by_line(code, paid_at, ref1="NOBODYKNOWSTHIS00000", name="")
    confirm_all()
    with pytest.raises(NotPossible, match="did not tell the payer's account"):
        decide("send_back", receipt)
    till.bank.tell(code, paid_at=paid_at, reference1="NOBODYKNOWSTHIS00000")
    made = decide("send_back", receipt)
    order = Transfer.objects.get(pk=made.id)
    assert (order.bank_code, order.account, order.account_name) == ("014", ACCOUNT, "Somchai Jaidee")


def test_a_payment_that_an_answer_told_learns_its_payer_from_the_callback(
    till: Till, code: dict[str, Any]
) -> None:
    notice = till.bank.notice(code) | {"slip_reference": "2026112100000000001"}
    receipt = by_inquiry(notice, payer_name="", payer_bank_code="", payer_account="", slip_reference="")
    payment = Payment.objects.get()
    assert payer_of(receipt) == ("", "", "") and payer_of(payment) == (None, None, None)
    till.bank.post(notice)
    assert payer_of(receipt) == payer_of(payment) == ("Somchai Jaidee", "014", ACCOUNT)
    assert (receipt.slip_reference, Receipt.objects.count()) == ("2026112100000000001", 1)


def test_what_was_said_of_the_payer_stays(till: Till, code: dict[str, Any], paid_at: datetime) -> None:
    receipt, payment = by_line(code, paid_at, name="MS MALEE"), Payment.objects.get()
    till.bank.tell(code, paid_at=paid_at)
    assert payer_of(receipt) == payer_of(payment) == ("MS MALEE", "014", ACCOUNT)
    told = till.bank.notice(code, paid_at=paid_at, transaction_id=receipt.also_known_as)
    till.bank.post(told | {"payer_name": "SOMEBODY", "payer_account": "9999999999"})
    assert payer_of(receipt) == payer_of(payment) == ("MS MALEE", "014", ACCOUNT)


def test_an_account_is_not_brought_to_another_bank_than_was_said(
    till: Till, code: dict[str, Any], paid_at: datetime
) -> None:
    receipt, payment = by_line(code, paid_at, payer_bank="004", name=""), Payment.objects.get()
    till.bank.tell(code, paid_at=paid_at)
    assert (payer_of(receipt), payer_of(payment)) == (
        ("Somchai Jaidee", "004", ""),
        ("Somchai Jaidee", "004", None),
    )


def test_a_message_that_contradicts_brings_nothing(till: Till, code: dict[str, Any]) -> None:
    notice = till.bank.notice(code)
    receipt = by_inquiry(notice, payer_name="", payer_bank_code="", payer_account="")
    till.bank.post(notice | {"amount": "1.00"})
    assert payer_of(receipt) == ("", "", "")


def test_the_client_that_was_named_is_compared_with_the_payer_that_is_told_later(
    till: Till, paid_at: datetime
) -> None:
    code = till.shop.qr_code(client_bank_account="405-1-23456-7")
    by_line(code, paid_at, name="")
    assert not Payment.objects.get().payer_differs
    till.bank.tell(code, paid_at=paid_at)
    assert Payment.objects.get().payer_differs


def test_the_database_lets_a_receipt_learn_and_nothing_more(
    till: Till, code: dict[str, Any], paid_at: datetime
) -> None:
    receipt = by_line(code, paid_at, name="", payer_bank="")
    learnable = ["payer_name", "payer_bank_code", "payer_account_sealed", "slip_reference"]
    update = "UPDATE receipts_receipt SET {} = %s WHERE id = %s"
    for column in learnable:
        assert sqlstate(update.format(column), "014", receipt.id) is None
        for other in ("015", ""):
            assert sqlstate(update.format(column), other, receipt.id) == NOT_ALLOWED


@pytest.mark.django_db(transaction=True)
def test_of_two_payers_told_at_once_one_is_learnt_whole() -> None:
    till = Till(open_shop("Race"), BankCaller(new_client()))
    for _ in range(10):
        notice = till.bank.notice(till.shop.qr_code())
        receipt = by_inquiry(notice, payer_name="", payer_bank_code="", payer_account="")
        one = {"payer_name": "ONE", "payer_bank_code": "014", "payer_account": "1111111111"}
        two = {"payer_name": "TWO", "payer_bank_code": "004", "payer_account": "2222222222"}
        at_once(*[partial(BankCaller(new_client()).post, notice | payer) for payer in (one, two)])
        assert payer_of(receipt) == payer_of(Payment.objects.get(pk=receipt.payment_id))
        assert payer_of(receipt) in [tuple(one.values()), tuple(two.values())]
