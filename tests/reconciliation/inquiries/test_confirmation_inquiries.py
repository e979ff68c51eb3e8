"""Inquiries that confirm money of a statement, within the rate limit of all inquiries."""

from typing import Any

import pytest

from banks import InquiryFailed
from core import clock
from core.thai import thaiqr
from reconciliation.models import BankTransaction, ConfirmationInquiry
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.inquiries.builders import Answering, found, sweep
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
AMOUNT = 150_000


def available(shop: Shop) -> tuple[int, int]:
    balance: dict[str, Any] = shop.get("/v1/balance").json()
    return balance["available"], balance.get("unconfirmed", 0)


def test_confirmed_money_becomes_available(shop: Shop, bank: SandboxBankClient, served_by: Answering) -> None:
    code = shop.qr_code()
    fake_bank = served_by(found(bank.notification(code, paid_at=clock.now())))
    import_file(bot_file(credit_line(code, clock.now())))
    assert available(shop) == (0, AMOUNT)
    assert sweep(0) == 1
    assert available(shop) == (AMOUNT, 0)
    assert fake_bank.references == [BankTransaction.objects.get().reference1]
    assert sweep(7200) == 0


def test_money_unknown_to_the_bank_stays_unconfirmed_for_a_day(shop: Shop, served_by: Answering) -> None:
    fake_bank = served_by()
    import_file(bot_file(credit_line(shop.qr_code(), clock.now())))
    for hours in range(26):
        sweep(3600 * hours)
    assert available(shop) == (0, AMOUNT)
    assert ConfirmationInquiry.objects.get().due_at is None
    assert len(fake_bank.references) == 25


def test_confirmation_inquiry_without_answer_is_retried(
    shop: Shop, bank: SandboxBankClient, served_by: Answering
) -> None:
    code = shop.qr_code()
    served_by(InquiryFailed(), found(bank.notification(code, paid_at=clock.now())))
    import_file(bot_file(credit_line(code, clock.now())))
    sweep(0)
    assert (available(shop), sweep(59)) == ((0, AMOUNT), 0)
    sweep(60)
    assert available(shop) == (AMOUNT, 0)


def test_confirmations_have_low_priority_and_share_the_rate_limit(shop: Shop, served_by: Answering) -> None:
    fake_bank = served_by(per_second=2)
    import_file(bot_file(*(credit_line(shop.qr_code(), clock.now()) for _ in range(5))))
    shop.qr_code()
    waiting = line_reference(shop.qr_code())
    assert sweep(6) == 2
    assert waiting in fake_bank.references
    sweep(6)
    assert len(fake_bank.references) == 4


def test_statement_money_with_unknown_reference_is_confirmed_in_suspense(
    shop: Shop, bank: SandboxBankClient, served_by: Answering
) -> None:
    code = shop.qr_code()
    served_by(found(bank.notification(code, paid_at=clock.now(), reference1="NOBODYKNOWSTHIS00000")))
    import_file(bot_file(credit_line(code, clock.now(), ref1="NOBODYKNOWSTHIS00000")))
    sweep(0)
    bank_transaction = BankTransaction.objects.get(reference1="NOBODYKNOWSTHIS00000")
    assert (bank_transaction.match_result, bank_transaction.is_confirmed) == ("unmatched", True)


def line_reference(code: dict[str, Any]) -> str:
    return str(thaiqr.parse(code["qr_data"]).reference1)
