"""A bank that can be asked confirms what a statement reports, within the limits of all inquiries."""

from typing import Any

import pytest

from banks import NotAnswered
from core import clock, thaiqr
from receipts.models import ConfirmationInquiry, Receipt
from tests.conftest import BankCaller, Shop
from tests.receipts.inquiries.cast import found, sweep
from tests.receipts.inquiries.conftest import Answering
from tests.receipts.statements.cast import bot, line_of, load

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
AMOUNT = 150_000


def available(shop: Shop) -> tuple[int, int]:
    balance: dict[str, Any] = shop.get("/v1/balance").json()
    return balance["available"], balance.get("unconfirmed", 0)


def test_bank_that_has_the_money_confirms_it_and_it_is_available(
    shop: Shop, bank: BankCaller, served_by: Answering
) -> None:
    code = shop.qr_code()
    asked = served_by(found(bank.notice(code, paid_at=clock.now())))
    load(bot(line_of(code, clock.now())))
    assert available(shop) == (0, AMOUNT)
    assert sweep(0) == 1
    assert available(shop) == (AMOUNT, 0)
    assert asked.asked == [Receipt.objects.get().reference1]
    assert sweep(7200) == 0


def test_bank_that_has_no_such_money_leaves_it_unconfirmed_and_is_asked_for_a_day(
    shop: Shop, served_by: Answering
) -> None:
    asked = served_by()
    load(bot(line_of(shop.qr_code(), clock.now())))
    for hours in range(26):
        sweep(3600 * hours)
    assert available(shop) == (0, AMOUNT)
    assert ConfirmationInquiry.objects.get().due_at is None
    assert len(asked.asked) == 25


def test_silent_bank_is_asked_again(shop: Shop, bank: BankCaller, served_by: Answering) -> None:
    code = shop.qr_code()
    served_by(NotAnswered(), found(bank.notice(code, paid_at=clock.now())))
    load(bot(line_of(code, clock.now())))
    sweep(0)
    assert (available(shop), sweep(59)) == ((0, AMOUNT), 0)
    sweep(60)
    assert available(shop) == (AMOUNT, 0)


def test_questions_about_a_file_wait_behind_codes_at_the_till_and_keep_the_limit_of_the_bank(
    shop: Shop, served_by: Answering
) -> None:
    asked = served_by(per_second=2)
    load(bot(*(line_of(shop.qr_code(), clock.now()) for _ in range(5))))
    shop.qr_code()
    waiting = line_reference(shop.qr_code())
    assert sweep(6) == 2
    assert waiting in asked.asked
    sweep(6)
    assert len(asked.asked) == 4


def test_unknown_reference_of_a_file_is_confirmed_in_suspense(
    shop: Shop, bank: BankCaller, served_by: Answering
) -> None:
    code = shop.qr_code()
    served_by(found(bank.notice(code, paid_at=clock.now(), reference1="NOBODYKNOWSTHIS00000")))
    load(bot(line_of(code, clock.now(), ref1="NOBODYKNOWSTHIS00000")))
    sweep(0)
    receipt = Receipt.objects.get(reference1="NOBODYKNOWSTHIS00000")
    assert (receipt.outcome, receipt.is_confirmed) == ("unmatched", True)


def line_reference(code: dict[str, Any]) -> str:
    return str(thaiqr.parse(code["qr_data"]).reference1)
