"""A file is imported only for its own bank; otherwise nothing is stored."""

from pathlib import Path
from typing import Any

import pytest

from core import clock
from merchants.models import Merchant
from reconciliation.models import BankNotification, BankTransaction, Statement
from reconciliation.statements.lines import InvalidStatementFile
from tests.conftest import SandboxBankClient, Shop
from tests.factories import MerchantFactory
from tests.reconciliation.statements.statement_files import (
    BILLER,
    bot_file,
    credit_line,
    csv_file,
    detail,
    header,
    import_file,
    trailer,
)
from tests.reconciliation.statements.test_import_command import file_of, run
from tests.reconciliation.statements.test_import_in_console import malee, upload

__all__ = ["malee"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
OTHER, STRANGE = "010753600037453", "099999999999999"


@pytest.fixture
def bbl(db: None) -> Merchant:
    merchant: Merchant = MerchantFactory(mode="live", bank="bbl", biller_id=OTHER)
    return merchant


def csv_of(*billers: str) -> bytes:
    return csv_file(*(f"2026-11-21,12:00:00,{biller},R{biller},,,1.00,credit,," for biller in billers))


def actor(code: str, biller: str) -> bytes:
    """Return a cross-bank file of the bank with this code."""
    credit = trailer(credit=150_000, credits=1)
    return b"\r\n".join([header().replace(b"998", code.encode()), detail(bank=code, biller=biller), credit])


def refused(body: bytes, bank: str) -> str:
    with pytest.raises(InvalidStatementFile) as error:
        import_file(body, bank=bank)
    assert not (Statement.objects.exists() or BankNotification.objects.filter(source="statement").exists())
    return str(error.value)


def test_statement_of_one_bank_cannot_be_imported_for_another_bank(
    shop: Shop, bank: SandboxBankClient, bbl: Merchant
) -> None:
    code, paid_at = shop.qr_code(), clock.now()
    bank.notify(code, paid_at=paid_at)
    assert (
        refused(bot_file(credit_line(code, paid_at)), "bbl")
        == "It was written by the bank 998, but bbl is 002."
    )
    assert BankTransaction.objects.get().bank == "sandbox"


@pytest.mark.parametrize("billers", [[BILLER], [BILLER, OTHER], [STRANGE, BILLER]])
def test_statement_file_with_billers_of_another_bank_is_refused(
    shop: Shop, bbl: Merchant, billers: list[str]
) -> None:
    reported = f"It is not a statement of bbl: merchants of other banks have {BILLER} (sandbox)."
    assert refused(csv_of(*billers), "bbl") == reported


def test_statement_file_with_only_unknown_billers_is_refused(shop: Shop, bbl: Merchant) -> None:
    billers = [f"09999999999999{number}" for number in range(5)]
    reported = "No merchant of bbl has a biller id of this file: "
    some = f"{', '.join(billers[:3])} and 2 more."
    assert refused(csv_of(*billers), "bbl") == reported + some


def test_statement_with_an_unknown_and_a_known_biller_is_imported(shop: Shop, bbl: Merchant) -> None:
    import_file(csv_of(STRANGE, OTHER), bank="bbl")
    assert set(BankTransaction.objects.values_list("bank", "biller_id")) == {("bbl", STRANGE), ("bbl", OTHER)}


def test_biller_id_used_at_two_banks_is_accepted(shop: Shop) -> None:
    MerchantFactory(mode="live", bank="bbl", biller_id=BILLER)
    for bank in ("sandbox", "bbl"):
        import_file(csv_of(BILLER), bank=bank)
    assert set(BankTransaction.objects.values_list("bank", flat=True)) == {"sandbox", "bbl"}


@pytest.mark.parametrize(("bank", "code"), [("scb", "014"), ("bbl", "002")])
def test_statement_file_with_another_bank_code_is_refused(shop: Shop, bank: str, code: str) -> None:
    MerchantFactory(mode="live", bank=bank, biller_id=OTHER)
    assert f"written by the bank 025, but {bank} is {code}" in refused(actor("025", OTHER), bank)
    assert import_file(actor(code, OTHER), bank=bank).is_clean


def test_bank_of_a_file_without_header_is_read_from_the_first_line(shop: Shop, bbl: Merchant) -> None:
    assert "written by the bank 014" in refused(detail(bank="014", biller=OTHER), "bbl")


def test_statement_file_with_only_unreadable_lines_is_stored(shop: Shop) -> None:
    assert import_file(csv_of("?")).counts == {"unreadable": 1}


def test_import_command_refuses_a_file_of_another_bank(tmp_path: Path, shop: Shop, bbl: Merchant) -> None:
    path = file_of(tmp_path, bot_file(detail()))
    output, trouble = run(path, bank="bbl")
    assert output == f"{path}: It was written by the bank 998, but bbl is 002.\n"
    assert trouble == "Files with errors: 1 of 1."


def test_console_refuses_a_file_of_another_bank(shop: Shop, bbl: Merchant, malee: Any) -> None:
    shown = upload(malee, csv_of(BILLER), bank="bbl").content.decode()
    assert "It is not a statement of bbl" in shown
    assert not Statement.objects.exists()
