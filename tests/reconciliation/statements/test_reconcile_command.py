"""`manage.py reconcile`: the differences between a bank's day and ours, in satang."""

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command

from core import clock
from reconciliation.models import BankTransaction
from tests.conftest import SandboxBankClient, Shop
from tests.factories import MerchantFactory
from tests.reconciliation.statements.statement_files import (
    bot_file,
    confirm_all_transactions,
    credit_line,
    detail,
    import_file,
)

pytestmark = [pytest.mark.django_db]
NOON = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)
DAY = "2026-11-21"


@pytest.fixture(autouse=True)
def at_noon() -> Any:
    with time_machine.travel(NOON, tick=False):
        yield


def reconcile(*options: str, day: str = DAY) -> tuple[str, bool]:
    """Return the output and whether there were no differences."""
    output = io.StringIO()
    try:
        call_command("reconcile", day, *options, stdout=output, stderr=output)
    except CommandError:
        return output.getvalue(), False
    return output.getvalue(), True


def objects(*options: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in reconcile("--json", *options)[0].splitlines() if line[0] == "{"]


def test_reconcile_succeeds_if_both_sides_agree(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    bank.notify(code, paid_at=clock.now())
    import_file(bot_file(credit_line(code, clock.now())))
    output, is_well = reconcile()
    assert is_well
    credits = "1 credits of 1,500.00 THB, 0 debits of 0.00 THB"
    assert output == f"sandbox: the bank {credits}; we {credits}\n"


def test_reconcile_reports_money_that_is_not_credited(shop: Shop) -> None:
    import_file(bot_file(detail()))
    output, is_well = reconcile()
    assert not is_well
    assert "at the bank, not credited" in output
    assert BankTransaction.objects.get().id in output


def test_reconcile_reports_transactions_without_line_and_missing_statements(
    shop: Shop, bank: SandboxBankClient
) -> None:
    bank.notify(shop.qr_code(), paid_at=clock.now())
    output, is_well = reconcile()
    assert not is_well
    assert "recorded here, in no statement" in output
    assert f"sandbox: no statement of {DAY} was imported." in output


@pytest.mark.slow
def test_reconcile_of_a_partial_day_reports_an_equal_payment_until_the_day_is_complete(
    shop: Shop, bank: SandboxBankClient
) -> None:
    code = shop.qr_code()
    first = credit_line(code, clock.now(), name="Malee")
    second = credit_line(code, clock.now(), name="Somchai")
    for _ in range(2):
        bank.notify(code, paid_at=clock.now())
    for part in (first, second):
        import_file(bot_file(part))
    (missing, *_) = [found for found in objects() if found.get("what") == "recorded here, in no statement"]
    assert missing["amount"] == 150_000
    import_file(bot_file(first, second))
    assert not [found for found in objects() if found.get("what") == "recorded here, in no statement"]


@pytest.mark.slow
def test_reconcile_reports_unreadable_lines(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    bank.notify(code, paid_at=clock.now())
    import_file(bot_file(credit_line(code, clock.now()), detail(amount="?")))
    (difference, summed) = objects()
    assert (difference["what"], difference["amount"]) == ("at the bank, unreadable", None)
    assert summed["theirs"] == summed["ours"] == {"credits": 1, "credit": 150_000, "debits": 0, "debit": 0}


@pytest.mark.parametrize(("hours", "is_of_the_day"), [(-12, True), (-13, False), (11, True), (12, False)])
@pytest.mark.slow
def test_reconcile_uses_the_day_in_bangkok(
    shop: Shop, bank: SandboxBankClient, hours: int, is_of_the_day: bool
) -> None:
    bank.notify(shop.qr_code(), paid_at=NOON + timedelta(hours=hours))
    (*_, summed) = objects()
    assert summed["ours"]["credits"] == is_of_the_day


def test_reconcile_ignores_declines(shop: Shop, bank: SandboxBankClient) -> None:
    bank.notify(shop.qr_code(), type="decline", paid_at=clock.now())
    assert reconcile()[1]


@pytest.mark.slow
def test_reconcile_compares_only_the_given_bank(shop: Shop) -> None:
    import_file(bot_file(detail()))
    MerchantFactory(bank="scb", mode="live")
    assert reconcile("--bank", "scb")[1]
    assert not reconcile("--bank", "sandbox")[1]


def test_reconcile_refuses_an_unknown_bank(shop: Shop) -> None:
    with pytest.raises(CommandError, match="No merchant has the bank 'sandbx'"):
        call_command("reconcile", DAY, "--bank", "sandbx")


@pytest.mark.parametrize("text", ["yesterday", "2569-11-21", "9999-12-31", "0001-01-01"])
def test_reconcile_refuses_an_invalid_date(text: str) -> None:
    with pytest.raises(CommandError, match=r"not a date such as|write 2026"):
        call_command("reconcile", text)


@pytest.mark.slow
def test_reconcile_reports_credits_known_only_from_a_file(shop: Shop) -> None:
    import_file(bot_file(credit_line(shop.qr_code(), clock.now())))
    output, is_well = reconcile()
    assert not is_well
    assert "reported only by an uploaded file" in output
    assert "line 2, uploaded by malee" in output
    confirm_all_transactions()
    assert reconcile()[1]
