"""Money that was paid before its code existed is a contradiction: it waits for staff."""

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client

from core import clock
from core.clock import BANGKOK
from merchants.models import LateMoneyPolicy, Merchant
from payments.models import Payment
from reconciliation.exceptions import resolutions
from reconciliation.models import BankTransaction, ReconciliationException, ResolutionType
from tests.reconciliation.builders import (
    Seller,
    decide,
    event_types_of,
    exception_url,
    get_page,
    state_of,
    suspense,
)
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file
from tests.sqlstates import CHECK_VIOLATION, rolled_back, sqlstate
from tests.timeline.builders import entries

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
MADE_AT = datetime(2026, 11, 21, 9, 5, 40, tzinfo=BANGKOK)
LONG = 2 * DAY + HOUR
WRONG = ("time_mismatch", "")


@pytest.fixture
def code(seller: Seller) -> dict[str, Any]:
    made: dict[str, Any] = seller.shop.qr_code()
    return made


@pytest.fixture
def wrong(seller: Seller, code: dict[str, Any]) -> BankTransaction:
    return seller.report(code, paid_at=clock.now() - LONG)


def payment() -> Payment:
    found: Payment = Payment.objects.earliest("created_at")
    return found


@pytest.mark.parametrize("satang", [150_000, 1, 300_000])
@pytest.mark.slow
def test_money_paid_before_its_code_existed_waits_for_staff(
    seller: Seller, code: dict[str, Any], satang: int
) -> None:
    """The time is judged before the amount."""
    bank_transaction = seller.report(code, paid_at=clock.now() - LONG, satang=satang)
    assert (state_of(bank_transaction), payment().status, suspense()) == (WRONG, "pending", satang)
    assert ReconciliationException.objects.get().reason == "time_mismatch"
    (shown,) = seller.shop.payment(code["payment_id"])["exceptions"]
    assert (shown["reason"], shown["amount"], shown["status"]) == ("time_mismatch", satang, "open")
    assert event_types_of(bank_transaction.id) == ["payment.exception"]
    assert "paid too early" in entries(seller.shop, code["payment_id"])[-1]["summary"]


@pytest.mark.slow
def test_staff_read_how_much_too_early_the_money_was(wrong: BankTransaction, admin_client: Client) -> None:
    page = get_page(admin_client, exception_url(wrong.id))
    assert "Paid too early: 2 days before the code was made." in page
    assert "/do/accept" in page and "/do/send-back" in page and "/do/return-excess" not in page


@pytest.mark.parametrize(
    ("before", "match_result"),
    [
        (0 * SECOND, "applied"),
        (40 * SECOND, "applied"),  # the bank writes 09:05
        (90 * SECOND, "applied"),
        (90.001 * SECOND, "time_mismatch"),
        (7 * HOUR, "time_mismatch"),  # the bank writes UTC and says that it is Bangkok
    ],
)
@pytest.mark.parametrize("source", ["callback", "statement"])
def test_bank_time_may_be_ninety_seconds_before_the_code(
    seller: Seller, source: str, before: timedelta, match_result: str
) -> None:
    with time_machine.travel(MADE_AT, tick=False):
        code = seller.shop.qr_code()
        paid_at = MADE_AT - before
        if source == "callback":
            seller.report(code, paid_at=paid_at)
        else:
            import_file(bot_file(credit_line(code, paid_at)))
    assert BankTransaction.objects.get().match_result == match_result
    is_paid = match_result == "applied"
    assert payment().completed_at == (BankTransaction.objects.get().paid_at if is_paid else None)


@pytest.mark.parametrize(("days", "match_result"), [(0, "applied"), (1, "time_mismatch")])
def test_midnight_in_a_statement_is_the_whole_day(seller: Seller, days: int, match_result: str) -> None:
    """Some files have 00:00:00 where the bank left out the time."""
    with time_machine.travel(MADE_AT, tick=False):
        code = seller.shop.qr_code()
        import_file(bot_file(credit_line(code, MADE_AT - days * DAY, time="000000")))
    assert BankTransaction.objects.get().match_result == match_result
    assert payment().completed_at == (MADE_AT if match_result == "applied" else None)


def test_callback_of_midnight_has_its_time(seller: Seller) -> None:
    with time_machine.travel(MADE_AT, tick=False):
        bank_transaction = seller.report(
            seller.shop.qr_code(), paid_at=MADE_AT.replace(hour=0, minute=0, second=0)
        )
    assert state_of(bank_transaction) == WRONG


@pytest.mark.parametrize(("after", "match_result"), [(10 * 60, "applied"), (16 * 60, "late")])
def test_bank_time_after_the_reception_decides_only_about_expiry(
    seller: Seller, code: dict[str, Any], after: int, match_result: str
) -> None:
    """The code lasts 15 minutes. A bank time within them is in time, also if the bank's clock is ahead."""
    bank_transaction = seller.report(code, paid_at=clock.now() + after * SECOND)
    assert bank_transaction.match_result == match_result


@pytest.mark.parametrize("by_callback", [MADE_AT + SECOND, MADE_AT - 6 * HOUR])
@pytest.mark.slow
def test_first_report_of_money_decides_about_its_time(seller: Seller, by_callback: datetime) -> None:
    """Within a bank day another time is the same money, whatever it is."""
    by_line = MADE_AT - 6 * HOUR if by_callback > MADE_AT else MADE_AT + SECOND
    with time_machine.travel(MADE_AT, tick=False):
        code = seller.shop.qr_code()
        bank_transaction = seller.report(code, paid_at=by_callback)
        before = state_of(bank_transaction)
        import_file(bot_file(credit_line(code, by_line)))
    assert BankTransaction.objects.count() == 1
    assert state_of(bank_transaction) == before == (("applied", "") if by_callback > MADE_AT else WRONG)


@pytest.mark.slow
def test_money_with_a_wrong_time_for_a_paid_code_is_paid_twice(seller: Seller, code: dict[str, Any]) -> None:
    seller.report(code)
    assert state_of(seller.report(code, paid_at=clock.now() - LONG)) == ("duplicate", "")


@pytest.mark.usefixtures("wrong")
@pytest.mark.slow
def test_code_can_still_be_paid_after_money_of_a_wrong_time(seller: Seller, code: dict[str, Any]) -> None:
    seller.report(code)
    assert (payment().status, suspense(), seller.balance()) == ("succeeded", 150_000, (150_000, 0))


def test_policy_for_late_money_does_not_accept_a_wrong_time(seller: Seller) -> None:
    Merchant.objects.update(late_money=LateMoneyPolicy.ACCEPT)
    assert state_of(seller.report(seller.shop.qr_code(), paid_at=clock.now() - LONG)) == WRONG


# --- decisions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("satang", [150_000, 300_000])
@pytest.mark.slow
def test_accepted_money_of_a_wrong_time_is_paid_when_the_code_was_made(
    seller: Seller, code: dict[str, Any], satang: int
) -> None:
    bank_transaction = seller.report(code, paid_at=clock.now() - LONG, satang=satang)
    assert ResolutionType.EXCESS_SENT_BACK not in resolutions.allowed_types(bank_transaction)
    decide("accept", bank_transaction)
    shown = seller.shop.payment(code["payment_id"])
    assert (shown["status"], shown["completed_at"]) == ("succeeded", shown["created_at"])
    assert (payment().received, seller.balance(), suspense()) == (satang, (satang, 0), 0)
    assert event_types_of(bank_transaction.id) == ["payment.exception", "payment.exception_resolved"]


@pytest.mark.slow
def test_money_attached_to_a_newer_code_is_paid_when_the_code_was_made(seller: Seller) -> None:
    bank_transaction = seller.unmatched(paid_at=clock.now() - HOUR)
    code = seller.shop.qr_code()
    decide("attach", bank_transaction, payment_id=code["payment_id"])
    shown = seller.shop.payment(code["payment_id"])
    assert (shown["status"], shown["completed_at"]) == ("succeeded", shown["created_at"])


@pytest.mark.slow
def test_money_of_a_wrong_time_can_be_sent_back(wrong: BankTransaction) -> None:
    decide("record_manual_return", wrong, bank_reference="counter 7")
    assert (state_of(wrong), suspense()) == (("time_mismatch", "sent_back"), 0)


@pytest.mark.parametrize(("decision", "body"), [("accept", {}), ("return", {"part": "excess"})])
@pytest.mark.slow
def test_merchant_cannot_accept_money_of_a_wrong_time(
    seller: Seller, wrong: BankTransaction, decision: str, body: dict[str, str]
) -> None:
    answer = seller.ask_to(decision, wrong, **body)
    assert (answer.status_code, state_of(wrong)) == (400, WRONG)
    assert "paid before the code existed" in answer.json()["error"]["message"]
    decide("accept", wrong)
    assert "it is accepted" in seller.ask_to(decision, wrong, **body).json()["error"]["message"]


# --- declines ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_decline_before_the_code_existed_fails_no_payment(seller: Seller, code: dict[str, Any]) -> None:
    decline = seller.report(code, paid_at=clock.now() - LONG, type="decline")
    assert (state_of(decline), decline.payment, payment().status) == (("declined", ""), None, "pending")
    seller.report(code)
    assert payment().status == "succeeded"


def test_decline_seconds_before_the_code_fails_the_payment(seller: Seller, code: dict[str, Any]) -> None:
    seller.report(code, paid_at=clock.now() - 30 * SECOND, type="decline")
    assert payment().status == "failed"


# --- the database --------------------------------------------------------------------------------------


PAY = """
UPDATE payments_payment SET status = 'succeeded', completed_at = created_at - make_interval(secs => %s)
"""


@pytest.mark.parametrize(("seconds", "refused"), [(89, None), (91, CHECK_VIOLATION)])
@pytest.mark.usefixtures("code")
def test_database_refuses_a_payment_that_was_paid_before_it_was_created(
    seconds: int, refused: str | None
) -> None:
    with rolled_back():
        assert sqlstate(PAY, seconds) == refused
