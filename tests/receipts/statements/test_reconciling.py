"""A day at a bank: what one side has and the other has not, to the satang."""

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command

from core import clock
from receipts.models import Receipt
from tests.conftest import BankCaller, Shop
from tests.factories import MerchantFactory
from tests.receipts.statements.cast import bot, confirm_all, detail, line_of, load

pytestmark = [pytest.mark.django_db]
NOON = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)
DAY = "2026-11-21"


@pytest.fixture(autouse=True)
def at_noon() -> Any:
    with time_machine.travel(NOON, tick=False):
        yield


def reconcile(*options: str, day: str = DAY) -> tuple[str, bool]:
    """What is said, and whether all is well."""
    said = io.StringIO()
    try:
        call_command("reconcile", day, *options, stdout=said, stderr=said)
    except CommandError:
        return said.getvalue(), False
    return said.getvalue(), True


def objects(*options: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in reconcile("--json", *options)[0].splitlines() if line[0] == "{"]


def test_a_day_on_which_both_sides_agree_is_well(shop: Shop, bank: BankCaller) -> None:
    code = shop.qr_code()
    bank.tell(code, paid_at=clock.now())
    load(bot(line_of(code, clock.now())))
    said, is_well = reconcile()
    assert is_well
    credits = "1 credits of 1,500.00 THB, 0 debits of 0.00 THB"
    assert said == f"sandbox: the bank {credits}; we {credits}\n"


def test_money_that_waits_is_at_the_bank_and_not_credited(shop: Shop) -> None:
    load(bot(detail()))
    said, is_well = reconcile()
    assert not is_well
    assert "at the bank, not credited" in said
    assert Receipt.objects.get().id in said


def test_a_receipt_in_no_statement_is_named_and_a_missing_statement_too(shop: Shop, bank: BankCaller) -> None:
    bank.tell(shop.qr_code(), paid_at=clock.now())
    said, is_well = reconcile()
    assert not is_well
    assert "with us, in no statement" in said
    assert f"sandbox: no statement of {DAY} was imported." in said


def test_an_equal_payment_of_one_second_in_a_part_of_the_day_is_in_no_statement_until_the_whole_day_is(
    shop: Shop, bank: BankCaller
) -> None:
    code = shop.qr_code()
    first = line_of(code, clock.now(), name="Malee")
    second = line_of(code, clock.now(), name="Somchai")
    for _ in range(2):
        bank.tell(code, paid_at=clock.now())
    for part in (first, second):
        load(bot(part))
    (missing, *_) = [found for found in objects() if found.get("what") == "with us, in no statement"]
    assert missing["amount"] == 150_000
    load(bot(first, second))
    assert not [found for found in objects() if found.get("what") == "with us, in no statement"]


def test_a_line_that_nobody_can_read_is_a_difference(shop: Shop, bank: BankCaller) -> None:
    code = shop.qr_code()
    bank.tell(code, paid_at=clock.now())
    load(bot(line_of(code, clock.now()), detail(amount="?")))
    (difference, summed) = objects()
    assert (difference["what"], difference["amount"]) == ("at the bank, unreadable", None)
    assert summed["theirs"] == summed["ours"] == {"credits": 1, "credit": 150_000, "debits": 0, "debit": 0}


@pytest.mark.parametrize(("hours", "is_of_the_day"), [(-12, True), (-13, False), (11, True), (12, False)])
def test_the_day_is_that_of_bangkok(shop: Shop, bank: BankCaller, hours: int, is_of_the_day: bool) -> None:
    bank.tell(shop.qr_code(), paid_at=NOON + timedelta(hours=hours))
    (*_, summed) = objects()
    assert summed["ours"]["credits"] == is_of_the_day


def test_declines_moved_no_money(shop: Shop, bank: BankCaller) -> None:
    bank.tell(shop.qr_code(), type="decline", paid_at=clock.now())
    assert reconcile()[1]


def test_only_the_bank_that_is_asked_for_is_compared(shop: Shop) -> None:
    load(bot(detail()))
    MerchantFactory(bank="scb", mode="live")
    assert reconcile("--bank", "scb")[1]
    assert not reconcile("--bank", "sandbox")[1]


def test_a_bank_that_nobody_has_is_said_so(shop: Shop) -> None:
    with pytest.raises(CommandError, match="No merchant has the bank 'sandbx'"):
        call_command("reconcile", DAY, "--bank", "sandbx")


@pytest.mark.parametrize("text", ["yesterday", "2569-11-21", "9999-12-31", "0001-01-01"])
def test_what_is_no_date_is_said_so(text: str) -> None:
    with pytest.raises(CommandError, match="no date such as"):
        call_command("reconcile", text)


def test_credited_money_that_one_file_alone_reports_is_a_difference(shop: Shop) -> None:
    load(bot(line_of(shop.qr_code(), clock.now())))
    said, is_well = reconcile()
    assert not is_well
    assert "reported by one file alone" in said
    assert "line 2, uploaded by malee" in said
    confirm_all()
    assert reconcile()[1]
