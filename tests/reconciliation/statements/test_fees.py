"""The fee that a statement names: it wins over the terms of the merchant, once, and staff see it."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import IntegrityError, transaction
from django.test import Client

from core import clock
from core.clock import BANGKOK
from ledger.models import Journal
from payments.models import Payment
from reconciliation.matching import services as matching
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    ReconciliationException,
    StatementLine,
)
from reconciliation.statements import import_jobs
from tests.audit import differences
from tests.conftest import SandboxBankClient, Shop
from tests.payments.test_fees import balance, entries_of, events_of, fees_of, set_terms, withdraw
from tests.reconciliation.builders import (
    EXCEPTIONS_URL,
    RESOLVES,
    decide,
    exception_url,
    get_page,
    staff_client,
)
from tests.reconciliation.statements.statement_files import (
    HEADER,
    confirm_all_transactions,
    csv_file,
    import_file,
)
from tests.reconciliation.statements.test_import_in_console import begin, malee, preview
from tests.reconciliation.statements.test_lost_callbacks import store_unmatched_lines
from tests.reconciliation.statements.test_tables import errors_of, line_of, lines_of

__all__ = ["malee"]
pytestmark = pytest.mark.django_db
WITH_FEE = f"{HEADER},fee,fee_vat"
THAI = f"{HEADER},ค่าธรรมเนียม,ภาษีมูลค่าเพิ่ม"


@pytest.fixture
def shop(shop: Shop, noon: Any) -> Iterator[Shop]:
    """Its bank takes 1.00 % and VAT by the terms: 15.00 and 1.05 THB of 1,500.00 THB."""
    with time_machine.travel(noon, tick=False):
        set_terms(shop, noon - timedelta(days=2), rate=100)
        yield shop


def with_fee(code: dict[str, Any], fee: str = "12.00", vat: str = "0.84", **changes: str) -> str:
    return f"{line_of(code, **changes)},{fee},{vat}"


def import_fees(*lines: str, header: str = WITH_FEE) -> None:
    import_file(csv_file(*lines, header=header))


def paid(shop: Shop, bank: SandboxBankClient, amount: int = 150_000) -> dict[str, Any]:
    """A code whose payment the bank has reported."""
    code = shop.qr_code(amount=amount)
    bank.notify(code, paid_at=clock.now())
    return code


def reasons() -> list[str]:
    return sorted(ReconciliationException.objects.values_list("reason", flat=True))


# --- what a file says ---------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [WITH_FEE, THAI, f"{HEADER},Bank fee,VAT"])
def test_fee_and_its_vat_are_read_by_english_and_thai_names(shop: Shop, header: str) -> None:
    (line,) = lines_of(csv_file(with_fee(shop.qr_code(), '"1,200.50"', "84.04"), header=header))
    assert line.fee
    assert (line.fee.amount, line.fee.vat) == (120_050, 8_404)


@pytest.mark.parametrize(
    ("fee", "vat", "read"), [("", "", None), ("12.00", "", (1_200, 0)), ("0", "0", (0, 0))]
)
def test_empty_cells_name_no_fee(shop: Shop, fee: str, vat: str, read: Any) -> None:
    (line,) = lines_of(csv_file(with_fee(shop.qr_code(), fee, vat), header=WITH_FEE))
    assert (line.fee and (line.fee.amount, line.fee.vat)) == read


@pytest.mark.parametrize(
    ("fee", "vat", "error"),
    [
        ("-12.00", "0.84", "the fee cannot be '-12.00'"),
        ("free", "", "the fee cannot be 'free'"),
        ("", "0.84", "the fee cannot be ''"),
        ("12.00", "7%", "the VAT of the fee cannot be '7%'"),
        ("1500.00", "0.01", "the fee and its VAT are more than the amount"),
    ],
)
def test_line_with_a_fee_that_is_not_clear_is_unreadable(shop: Shop, fee: str, vat: str, error: str) -> None:
    assert errors_of(csv_file(with_fee(shop.qr_code(), fee, vat), header=WITH_FEE)) == [error]


def test_decimal_comma_of_a_fee_makes_thousands_unclear(shop: Shop) -> None:
    code = shop.qr_code()
    body = csv_file(with_fee(code, '"12,5"'), with_fee(code, '"1,200"'), header=WITH_FEE)
    assert errors_of(body) == ["the fee cannot be '12,5'", "the fee cannot be '1,200'"]


# --- the statement wins -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fee", "vat", "expected"),
    [
        ("12.00", "0.84", (1_200, 84)),
        ("20.00", "1.40", (2_000, 140)),
        ("16.05", "", (1_605, 0)),  # the same in all
        ("0", "0", (0, 0)),
    ],
)
def test_fee_of_the_statement_replaces_that_of_the_terms(
    shop: Shop, bank: SandboxBankClient, fee: str, vat: str, expected: tuple[int, int]
) -> None:
    code = paid(shop, bank)
    payment_id = code["payment_id"]
    assert fees_of(shop, payment_id) == (1_500, 105, 148_395)
    import_fees(with_fee(code, fee, vat))
    net = 150_000 - sum(expected)
    assert fees_of(shop, payment_id) == (*expected, net)
    assert balance(shop) == {"available": net}
    assert entries_of(payment_id, "fee_returned") == {
        "available": 1_605, "fees:sandbox": -1_500, "fee_vat:sandbox": -105
    }  # fmt: skip
    taken = {"available": -sum(expected), "fees:sandbox": expected[0], "fee_vat:sandbox": expected[1]}
    assert entries_of(payment_id, "fee_added") == {name: amount for name, amount in taken.items() if amount}
    assert sorted(events_of(payment_id)) == ["payment.fee_known", "payment.pending", "payment.succeeded"]
    assert reasons() == ["fee_differs"]
    import_fees(with_fee(code, fee, vat))
    assert (fees_of(shop, payment_id), reasons()) == ((*expected, net), ["fee_differs"])
    assert not differences()


def test_equal_fee_changes_nothing(shop: Shop, bank: SandboxBankClient) -> None:
    code = paid(shop, bank)
    import_fees(with_fee(code, "15.00", "1.05"))
    assert fees_of(shop, code["payment_id"]) == (1_500, 105, 148_395)
    assert "payment.fee_known" not in events_of(code["payment_id"])
    assert not StatementLine.objects.filter(is_fee_due=True).exists()
    assert reasons() == []


def test_merchant_without_terms_gets_the_fee_without_a_question(
    bank: SandboxBankClient, shop: Shop, noon: Any
) -> None:
    with time_machine.travel(noon - timedelta(days=3), tick=False):
        code = paid(shop, bank)
        import_fees(with_fee(code))
        assert fees_of(shop, code["payment_id"]) == (1_200, 84, 148_716)
        assert reasons() == []


def test_fee_beyond_the_balance_becomes_debt(shop: Shop, bank: SandboxBankClient) -> None:
    code = paid(shop, bank)
    assert withdraw(shop, 148_395).status_code == 200
    import_fees(with_fee(code, "20.00", "1.40"))
    assert balance(shop) == {"reserved": 148_395, "owed": 535}
    assert not differences()


def test_unconfirmed_money_takes_the_fee_of_its_line_when_it_is_confirmed(shop: Shop) -> None:
    code = shop.qr_code(amount=150_000)
    import_fees(with_fee(code))
    assert (fees_of(shop, code["payment_id"]), reasons()) == ((None, None, None), [])
    confirm_all_transactions()
    assert fees_of(shop, code["payment_id"]) == (1_200, 84, 148_716)
    assert entries_of(code["payment_id"], "fee") == {
        "available": -1_284, "fees:sandbox": 1_200, "fee_vat:sandbox": 84
    }  # fmt: skip
    assert reasons() == ["fee_differs"]
    assert not differences()


def test_callback_after_the_line_confirms_and_takes_the_fee(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code(amount=150_000)
    import_fees(with_fee(code))
    bank.notify(code, paid_at=clock.now())
    assert fees_of(shop, code["payment_id"]) == (1_200, 84, 148_716)
    assert not differences()


def test_later_export_may_be_the_first_that_names_the_fee(shop: Shop, bank: SandboxBankClient) -> None:
    code = paid(shop, bank)
    import_fees(line_of(code), header=HEADER)
    import_fees(with_fee(code))
    assert fees_of(shop, code["payment_id"]) == (1_200, 84, 148_716)
    assert StatementLine.objects.count() == 1
    assert not differences()


def test_second_fee_of_a_payment_is_kept_and_asked_and_not_taken(shop: Shop, bank: SandboxBankClient) -> None:
    code = paid(shop, bank)
    import_fees(with_fee(code))
    for _ in range(2):
        import_fees(with_fee(code, "13.00", "0.91"))
    assert fees_of(shop, code["payment_id"]) == (1_200, 84, 148_716)
    assert reasons() == ["conflict", "fee_differs"]
    assert b"13.00" in BankNotification.objects.get(result="conflict").body
    assert not differences()


def test_fee_of_unmatched_money_is_taken_when_staff_attach_it(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code(amount=150_000)
    import_fees(with_fee(code, reference1="NOBODYKNOWSTHIS00000"))
    confirm_all_transactions()
    held = BankTransaction.objects.get()
    decide("attach", held.id, payment_id=code["payment_id"])
    assert fees_of(shop, code["payment_id"]) == (1_200, 84, 148_716)
    assert reasons() == ["fee_differs"]
    assert not differences()


def test_fee_of_a_line_whose_money_the_bank_reported_and_staff_accept(
    shop: Shop, bank: SandboxBankClient
) -> None:
    code = shop.qr_code(amount=150_000)
    bank.notify(code, satang=140_000, paid_at=clock.now())
    import_fees(with_fee(code, amount="1400.00"))
    assert not StatementLine.objects.filter(is_fee_due=True).exists()
    decide("accept", BankTransaction.objects.get().id)
    assert fees_of(shop, code["payment_id"]) == (1_200, 84, 138_716)
    assert not differences()


@pytest.mark.parametrize("is_named_later", [False, True])
@pytest.mark.parametrize(("fee", "asked"), [("12.00", ["conflict"]), ("15.00", [])])
def test_fee_of_a_line_that_is_merged_into_a_callback_is_asked_unless_it_was_taken(
    shop: Shop, bank: SandboxBankClient, is_named_later: bool, fee: str, asked: list[str]
) -> None:
    code = paid(shop, bank)
    next_day = {"date": f"{clock.now().astimezone(BANGKOK) + timedelta(days=1):%Y-%m-%d}"}
    named, unnamed = with_fee(code, fee, "1.05", **next_day), with_fee(code, "", "", **next_day)
    import_fees(unnamed if is_named_later else named)
    decide("merge", BankTransaction.objects.get(source="statement").id)
    import_fees(named)
    assert (fees_of(shop, code["payment_id"]), reasons()) == ((1_500, 105, 148_395), asked)
    assert not StatementLine.objects.filter(is_fee_due=True).exists()
    assert not differences()


def test_fee_of_a_debit_is_kept_and_not_taken(shop: Shop, bank: SandboxBankClient) -> None:
    code = paid(shop, bank)
    import_fees(with_fee(code, type="debit"))
    line = StatementLine.objects.get()
    assert (line.kind, line.fee, line.is_fee_due) == ("reversal", 1_200, False)
    assert fees_of(shop, code["payment_id"])[0] == 1_500
    assert not differences()


def test_fee_of_a_refunded_payment_is_corrected(shop: Shop, bank: SandboxBankClient) -> None:
    code = paid(shop, bank)
    paid(shop, bank, 100_000)
    assert shop.post("/v1/refunds", {"payment_id": code["payment_id"]}).status_code == 200
    import_fees(with_fee(code))
    assert fees_of(shop, code["payment_id"]) == (1_200, 84, 148_716)
    assert not differences()


# --- what people see ----------------------------------------------------------------------------------


def test_exception_names_both_fees_the_difference_and_the_terms_until_it_is_dismissed(
    shop: Shop, bank: SandboxBankClient
) -> None:
    import_fees(with_fee(paid(shop, bank), "20.00", "1.40"))
    asked = ReconciliationException.objects.get()
    clerk = staff_client("malee", *RESOLVES)
    page = get_page(clerk, exception_url(asked.pk))
    assert "The statement of the bank names another fee than the terms of the merchant." in page
    for text in ("20.00 THB, and 1.40 THB VAT", "15.00 THB, and 1.05 THB VAT", "5.35 THB"):
        assert text in page
    assert "0.00 THB and 1.00 % of each payment, with VAT" in page
    assert "Another fee than the terms" in get_page(clerk, EXCEPTIONS_URL, reason__exact="fee_differs")
    decide("dismiss", asked.pk)
    assert reasons() == []
    decide("reopen", asked.pk)
    assert reasons() == ["fee_differs"]
    assert not differences()


def test_timeline_shows_what_each_statement_of_the_fee_said(shop: Shop) -> None:
    code = shop.qr_code(amount=150_000)
    import_fees(line_of(code), header=HEADER)
    confirm_all_transactions()
    import_fees(with_fee(code))
    shown = shop.get(f"/v1/payments/{code['payment_id']}/timeline").json()["timeline"]
    known = [each for each in shown if each["type"] == "payment.fee_known"]
    assert sorted(each["details"]["fee"] for each in known) == [1_200, 1_500]
    assert not differences()


def test_balance_has_the_old_and_the_new_fee(shop: Shop, bank: SandboxBankClient) -> None:
    import_fees(with_fee(paid(shop, bank)))
    rows = shop.get("/v1/balance/transactions").json()["balance_transactions"]
    assert sorted((each["type"], each["amount"]) for each in rows) == [
        ("fee_added", -1_284), ("fee_returned", 1_605), ("payment", 148_395)
    ]  # fmt: skip


def test_fees_are_shown_before_the_import_and_on_the_line(shop: Shop, malee: Client) -> None:
    body = csv_file(with_fee(shop.qr_code()), header=WITH_FEE)
    seen = preview(malee, body)
    assert {"12.00 THB", "0.84 THB", "Fee", "VAT of the fee"} <= set(
        re.split(r"<[^>]*>", seen.content.decode())
    )
    begin(malee, seen)
    import_jobs.run_due()
    line = StatementLine.objects.get()
    assert "12.00 THB" in get_page(malee, f"/admin/reconciliation/statementline/{line.pk}/change/")


# --- crashes ------------------------------------------------------------------------------------------


def test_sweep_takes_the_fee_after_a_crash_between_the_commits(shop: Shop, bank: SandboxBankClient) -> None:
    code = paid(shop, bank)
    store_unmatched_lines(csv_file(with_fee(code), header=WITH_FEE))
    assert fees_of(shop, code["payment_id"]) == (1_500, 105, 148_395)
    matching.apply_unapplied(now=clock.now())
    assert fees_of(shop, code["payment_id"]) == (1_200, 84, 148_716)
    matching.apply_unapplied(now=clock.now())
    assert Journal.objects.filter(type="fee_returned").count() == 1
    assert not differences()


# --- the database -------------------------------------------------------------------------------------


def test_database_refuses_another_fee_that_no_statement_names(shop: Shop, bank: SandboxBankClient) -> None:
    code = paid(shop, bank)
    payment = Payment.objects.filter(pk=code["payment_id"])
    for changes in (
        {"fee": 0},
        {"fee_vat": 0},
        {"fee": 1_200, "fee_vat": 84},
        {"fee": None, "fee_vat": None},
    ):
        with pytest.raises(IntegrityError, match="keeps its fee"), transaction.atomic():
            payment.update(**changes)
    import_fees(with_fee(code))
    with pytest.raises(IntegrityError, match="keeps its fee"), transaction.atomic():
        payment.update(fee=1_500, fee_vat=105)


@pytest.mark.parametrize("changes", [{"fee": 0}, {"fee": None, "fee_vat": None}, {"is_fee_due": True}])
def test_database_keeps_the_fee_of_a_line(
    shop: Shop, bank: SandboxBankClient, changes: dict[str, Any]
) -> None:
    import_fees(with_fee(paid(shop, bank)))
    with pytest.raises(IntegrityError, match="fee"), transaction.atomic():
        StatementLine.objects.update(**changes)


@pytest.mark.parametrize("fee", [-1, 150_000])
def test_database_refuses_a_fee_beyond_the_line(shop: Shop, bank: SandboxBankClient, fee: int) -> None:
    import_fees(line_of(paid(shop, bank)), header=HEADER)
    with pytest.raises(IntegrityError, match="fee_within_amount"), transaction.atomic():
        StatementLine.objects.update(fee=fee, fee_vat=1)


def test_database_refuses_a_second_question_about_one_payment(shop: Shop, bank: SandboxBankClient) -> None:
    import_fees(with_fee(paid(shop, bank)))
    asked = BankNotification.objects.get(result="fee_differs")
    asked.id = asked.id[:-1] + ("A" if asked.id[-1] != "A" else "B")
    with pytest.raises(IntegrityError, match="notification_of_fee_once"), transaction.atomic():
        asked.save(force_insert=True)
