"""A file is imported only for the bank whose statement it is; of another's nothing is kept."""

from pathlib import Path
from typing import Any

import pytest

from core import clock
from merchants.models import Merchant
from receipts.models import Notice, Receipt, Statement
from receipts.statements.lines import NotAStatement
from tests.conftest import BankCaller, Shop
from tests.factories import MerchantFactory
from tests.receipts.statements.cast import BILLER, bot, detail, header, line_of, load, plain, trailer
from tests.receipts.statements.test_command import file_of, run
from tests.receipts.statements.test_console import malee, upload

__all__ = ["malee"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
OTHER, STRANGE = "010753600037453", "099999999999999"


@pytest.fixture
def bbl(db: None) -> Merchant:
    merchant: Merchant = MerchantFactory(mode="live", bank="bbl", biller_id=OTHER)
    return merchant


def csv_of(*billers: str) -> bytes:
    return plain(*(f"2026-11-21,12:00:00,{biller},R{biller},,,1.00,credit,," for biller in billers))


def by(code: str, biller: str) -> bytes:
    """A file of the cross-bank standard by the bank of that code."""
    credit = trailer(credit=150_000, credits=1)
    return b"\r\n".join([header().replace(b"998", code.encode()), detail(bank=code, biller=biller), credit])


def refused(body: bytes, bank: str) -> str:
    with pytest.raises(NotAStatement) as error:
        load(body, bank=bank)
    assert not (Statement.objects.exists() or Notice.objects.filter(source="statement").exists())
    return str(error.value)


def test_paid_money_never_comes_again_under_the_name_of_another_bank(
    shop: Shop, bank: BankCaller, bbl: Merchant
) -> None:
    code, paid_at = shop.qr_code(), clock.now()
    bank.tell(code, paid_at=paid_at)
    assert refused(bot(line_of(code, paid_at)), "bbl") == "It was written by the bank 998, but bbl is 002."
    assert Receipt.objects.get().bank == "sandbox"


@pytest.mark.parametrize("billers", [[BILLER], [BILLER, OTHER], [STRANGE, BILLER]])
def test_billers_of_another_bank_are_refused(shop: Shop, bbl: Merchant, billers: list[str]) -> None:
    told = f"It is not a statement of bbl: merchants of other banks have {BILLER} (sandbox)."
    assert refused(csv_of(*billers), "bbl") == told


def test_a_file_of_billers_that_nobody_here_has_is_refused(shop: Shop, bbl: Merchant) -> None:
    billers = [f"09999999999999{number}" for number in range(5)]
    told = "No merchant of bbl has a biller id of this file: "
    some = f"{', '.join(billers[:3])} and 2 more."
    assert refused(csv_of(*billers), "bbl") == told + some


def test_a_biller_that_nobody_has_comes_in_beside_one_of_the_bank(shop: Shop, bbl: Merchant) -> None:
    load(csv_of(STRANGE, OTHER), bank="bbl")
    assert set(Receipt.objects.values_list("bank", "biller_id")) == {("bbl", STRANGE), ("bbl", OTHER)}


def test_a_biller_id_that_two_banks_gave_proves_nothing(shop: Shop) -> None:
    MerchantFactory(mode="live", bank="bbl", biller_id=BILLER)
    for bank in ("sandbox", "bbl"):
        load(csv_of(BILLER), bank=bank)
    assert set(Receipt.objects.values_list("bank", flat=True)) == {"sandbox", "bbl"}


@pytest.mark.parametrize(("bank", "code"), [("scb", "014"), ("bbl", "002")])
def test_a_bank_is_known_by_its_code(shop: Shop, bank: str, code: str) -> None:
    MerchantFactory(mode="live", bank=bank, biller_id=OTHER)
    assert f"written by the bank 025, but {bank} is {code}" in refused(by("025", OTHER), bank)
    assert load(by(code, OTHER), bank=bank).is_clean


def test_a_file_without_its_header_is_known_by_its_first_line(shop: Shop, bbl: Merchant) -> None:
    assert "written by the bank 014" in refused(detail(bank="014", biller=OTHER), "bbl")


def test_a_file_of_nothing_but_broken_lines_is_kept(shop: Shop) -> None:
    assert load(csv_of("?")).counts == {"unreadable": 1}


def test_the_command_fails_and_says_why(tmp_path: Path, shop: Shop, bbl: Merchant) -> None:
    path = file_of(tmp_path, bot(detail()))
    said, trouble = run(path, bank="bbl")
    assert said == f"{path}: It was written by the bank 998, but bbl is 002.\n"
    assert trouble == "Files with something wrong: 1 of 1."


def test_the_console_says_why(shop: Shop, bbl: Merchant, malee: Any) -> None:
    shown = upload(malee, csv_of(BILLER), bank="bbl").content.decode()
    assert "It is not a statement of bbl" in shown
    assert not Statement.objects.exists()
