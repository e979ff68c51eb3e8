"""Callback, inquiry answer and statement line of the same money become one bank transaction."""

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from itertools import permutations
from typing import Any

import pytest
import time_machine

import banks
from audit_trail.acts import ActRefused
from banks import InquiryRequest
from core import clock
from core.clock import BANGKOK
from core.database import rows
from merchants.models import LateMoneyPolicy, Merchant
from reconciliation.exceptions import resolutions, summaries
from reconciliation.matching import deduplication, intake, services as matching
from reconciliation.models import (
    BankNotification,
    BankTransaction,
    ReconciliationException,
    ReportSource,
    ResolutionType,
    Return,
    StatementLine,
)
from tests.banks.fake_scb import BILLER, REFERENCE, FakeScb, confirmation, success, transaction
from tests.reconciliation.builders import (
    EXCEPTIONS_URL,
    RESOLVES,
    Seller,
    apply_inquiry_answer,
    decide,
    exception_url,
    get_page,
    staff_client,
    state_of,
    suspense,
)
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file
from tests.sqlstates import sqlstate
from tests.transfers.conftest import served_by

__all__ = ["served_by"]
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean", "old_codes")]
MIDNIGHT = datetime.combine(clock.now().astimezone(BANGKOK).date(), time(), BANGKOK)
NOON = MIDNIGHT - timedelta(hours=12)
DAY, SECOND, MS = timedelta(days=1), timedelta(seconds=1), timedelta(milliseconds=1)
CHECK_VIOLATION = "23514"

# The times of callback, inquiry and line.
TIMES = {
    "same second": (NOON + 321 * MS, NOON + 321 * MS, NOON),
    "line rounds up": (NOON + 660 * MS, NOON + 660 * MS, NOON + SECOND),
    "callback rounds down": (NOON, NOON + 660 * MS, NOON),
    "callback rounds up": (NOON + SECOND, NOON + 660 * MS, NOON + SECOND),
    "line is minutes later": (NOON, NOON, NOON + timedelta(minutes=20)),
    "line is hours earlier": (NOON, NOON, NOON - timedelta(hours=11)),
    "line is booked on the next day": (MIDNIGHT - 100 * MS, MIDNIGHT - 100 * MS, MIDNIGHT),
    "callback is ahead at midnight": (MIDNIGHT + 4 * SECOND, MIDNIGHT - SECOND, MIDNIGHT - SECOND),
}


def notification_of(seller: Seller, code: dict[str, Any], paid_at: datetime, name: str) -> dict[str, Any]:
    return seller.bank.notification(code, paid_at=paid_at, transaction_id=name)


@pytest.mark.parametrize("order", list(permutations(["callback", "inquiry", "line"])), ids="-".join)
@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_callback_inquiry_and_statement_become_one_bank_transaction(
    seller: Seller, times: tuple[datetime, datetime, datetime], order: tuple[str, ...]
) -> None:
    code = seller.shop.qr_code()
    by_callback, by_inquiry, by_line = times
    report: dict[str, Callable[[], object]] = {
        "callback": lambda: seller.bank.post(notification_of(seller, code, by_callback, "BANKID1")),
        "inquiry": lambda: apply_inquiry_answer(notification_of(seller, code, by_inquiry, "BANKID1")),
        "line": lambda: import_file(bot_file(credit_line(code, by_line))),
    }
    for source in order:
        report[source]()
    bank_transaction = BankTransaction.objects.get()
    assert (bank_transaction.match_result, bank_transaction.id_at_bank) == ("applied", "BANKID1")
    assert StatementLine.objects.get().bank_transaction == bank_transaction
    assert not ReconciliationException.objects.exists()
    assert not BankNotification.objects.filter(result="conflict").exists()
    assert seller.balance() == (150_000, 0)


@pytest.mark.parametrize("apart", [timedelta(minutes=6), DAY])
def test_same_bank_reference_on_two_bank_days_is_a_conflict(seller: Seller, apart: timedelta) -> None:
    code = seller.shop.qr_code()
    for paid_at in (MIDNIGHT - SECOND, MIDNIGHT - SECOND + apart):
        seller.bank.post(notification_of(seller, code, paid_at, "BANKID1"))
    assert [waiting.reason for waiting in ReconciliationException.objects.all()] == ["conflict"]


def test_scb_inquiry_time_with_milliseconds_equals_its_callback(seller: Seller) -> None:
    """Callbacks of SCB have whole seconds."""
    with FakeScb.running() as bank:
        bank.on_inquiry(
            "2026-11-21", success([transaction(transactionDateandTime="2026-11-21T11:30:58.660+07:00")])
        )
        scb = banks.get("scb", bank.config)
        at = datetime(2026, 11, 21, 4, 30, tzinfo=UTC)
        asked = InquiryRequest(BILLER, REFERENCE, 150_000, at, at + timedelta(minutes=15))
        (answer,) = scb.inquire(asked).transactions
        callback = scb.parse_notification(confirmation())
    assert isinstance(callback, banks.ReportedTransaction)
    assert answer.paid_at - callback.paid_at == 660 * MS
    for notification, source in ((callback, ReportSource.CALLBACK), (answer, ReportSource.INQUIRY)):
        bank_transaction = intake.receive(
            bank="scb", body=b"{}", notification=notification, now=clock.now(), source=source
        )
        matching.apply_report(bank_transaction, now=clock.now())
    assert list(BankNotification.objects.order_by("received_at").values_list("result", flat=True)) == [
        "new",
        "repeat",
    ]


# --- proofs that there are two ------------------------------------------------------------------------


def test_two_bank_ids_are_two_transactions_until_the_statement_has_one_line(seller: Seller) -> None:
    code = seller.shop.qr_code()
    seller.bank.post(notification_of(seller, code, NOON, "BANKID1"))
    second = seller.report(code, paid_at=NOON + timedelta(minutes=3))
    assert ResolutionType.SENT_BACK in resolutions.allowed_types(second)
    first_line, second_line = credit_line(code, NOON), credit_line(code, NOON + timedelta(minutes=3))
    import_file(bot_file(first_line))
    assert_is_blocked(seller, second, "two references, but its statement has one line")
    import_file(bot_file(first_line, second_line))
    assert_can_be_sent_back(second)


def test_single_statement_line_for_two_bank_ids_blocks_the_exception(seller: Seller) -> None:
    code = seller.shop.qr_code()
    import_file(bot_file(credit_line(code, NOON)))
    seller.bank.post(notification_of(seller, code, NOON + 2 * SECOND, "BANKID1"))
    second = seller.report(code, paid_at=NOON + timedelta(minutes=3))
    assert BankTransaction.objects.count() == 2
    assert_is_blocked(seller, second, "one line for both")


@pytest.mark.parametrize("line_first", [True, False])
@pytest.mark.parametrize("days", [1, 4])
def test_line_and_callback_of_different_days_are_probable_duplicates(
    seller: Seller, days: int, line_first: bool
) -> None:
    code = seller.shop.qr_code()
    by_line, by_callback = NOON - days * DAY, notification_of(seller, code, NOON, "BANKID1")
    report: list[Callable[[], object]] = [
        lambda: import_file(bot_file(credit_line(code, by_line))),
        lambda: seller.bank.post(by_callback),
    ]
    for each in report if line_first else report[::-1]:
        each()
    held = BankTransaction.objects.get(match_result="duplicate")
    assert_is_blocked(seller, held, "one of them is only a statement line")


def test_second_bank_reference_allows_return(seller: Seller) -> None:
    code = seller.shop.qr_code()
    import_file(bot_file(credit_line(code, NOON - DAY)))
    held = seller.report(code, paid_at=NOON)
    assert_is_blocked(seller, held, "Probable duplicate")
    apply_inquiry_answer(notification_of(seller, code, NOON - DAY, "BANKID2"))
    assert BankTransaction.objects.count() == 2
    assert_can_be_sent_back(held)


def test_second_statement_line_allows_return(seller: Seller) -> None:
    code = seller.shop.qr_code()
    import_file(bot_file(credit_line(code, NOON - DAY)))
    held = seller.report(code, paid_at=NOON)
    assert_is_blocked(seller, held, "Probable duplicate")
    import_file(bot_file(credit_line(code, NOON + SECOND)))
    assert BankTransaction.objects.count() == 2
    assert_can_be_sent_back(held)


def test_different_amount_or_reference_is_no_probable_duplicate(seller: Seller) -> None:
    code = seller.shop.qr_code()
    import_file(bot_file(credit_line(code, NOON - DAY)))
    for other in (seller.report(code, satang=149_999, paid_at=NOON), seller.unmatched(paid_at=NOON)):
        assert_can_be_sent_back(other)


def assert_is_blocked(seller: Seller, held: BankTransaction, reason: str) -> None:
    """Console, services and database refuse to resolve it."""
    before = state_of(held)
    assert resolutions.allowed_types(held) <= {ResolutionType.CONFIRMED, ResolutionType.MERGED}
    assert reason in summaries.by_id([held.id])[held.id].explanation
    payment_id = seller.shop.qr_code()["payment_id"]
    for action, values in (
        ("send_back", {}),
        ("record_manual_return", {"bank_reference": "counter 7"}),
        ("attach", {"payment_id": payment_id}),
    ):
        with pytest.raises(ActRefused, match=r"^Probable duplicate of btx_"):
            decide(action, held, **values)
    resolve = (
        "UPDATE reconciliation_banktransaction SET resolution_state = %s, resolved_at = now(), "
        "payment_id = %s WHERE id = %s"
    )
    for resolution_state in ("sending_back", "sent_back", "accepted"):
        assert sqlstate(resolve, resolution_state, held.payment_id, held.id) == CHECK_VIOLATION
    assert sqlstate(INSERT_RETURN, held.id) == CHECK_VIOLATION
    assert (state_of(held), Return.objects.count()) == (before, 0)


RESOLVE = "UPDATE reconciliation_banktransaction SET resolution_state = %s, resolved_at = now() WHERE id = %s"
INSERT_RETURN = """
INSERT INTO reconciliation_return (
    id, bank_transaction_id, amount, route, status, is_manual, bank_reference, failure_code, created_at
)
SELECT 'rtn_attack', id, amount, 'bank:sandbox', 'pending', false, '', '', now()
FROM reconciliation_banktransaction WHERE id = %s
"""


def assert_can_be_sent_back(held: BankTransaction) -> None:
    decide("record_manual_return", held, bank_reference="counter 7")
    assert state_of(held)[1] == "sent_back"


def test_console_shows_probable_duplicate_without_return_button(seller: Seller) -> None:
    code = seller.shop.qr_code()
    import_file(bot_file(credit_line(code, NOON - DAY)))
    held = seller.report(code, paid_at=NOON)
    client = staff_client("malee", *RESOLVES)
    assert "Probable duplicate of" in get_page(client, EXCEPTIONS_URL)
    page = get_page(client, exception_url(held.id))
    assert "Probable duplicate of" in page and BankTransaction.objects.get(source="statement").id in page
    assert "/do/send-back" not in page and "/do/by-hand" not in page


# --- late money --------------------------------------------------------------------------------------------


def test_late_money_policy_skips_probable_duplicates(seller: Seller) -> None:
    code, late = seller.shop.qr_code(expiry_minutes=1), clock.now() + timedelta(minutes=5)
    import_file(bot_file(credit_line(code, late + DAY)))
    assert state_of(BankTransaction.objects.get()) == ("late", "")
    Merchant.objects.filter(pk=seller.shop.merchant.id).update(late_money=LateMoneyPolicy.ACCEPT)
    held = seller.report(code, paid_at=late)
    assert (state_of(held), suspense(), seller.balance()) == (("late", ""), 300_000, (0, 0))


@pytest.mark.parametrize("second", ["callback", "line"])
def test_payment_does_not_succeed_by_money_already_returned(seller: Seller, second: str) -> None:
    with time_machine.travel(clock.now(), tick=False) as machine:
        code, made_at = seller.shop.qr_code(expiry_minutes=1), clock.now()
        by_callback = seller.bank.notification(
            code, paid_at=made_at if second == "callback" else made_at + DAY
        )
        by_line = credit_line(code, made_at + DAY if second == "callback" else made_at)
        machine.shift(2 * DAY)
        report: list[Callable[[], object]] = [
            lambda: import_file(bot_file(by_line)),
            lambda: seller.bank.post(by_callback),
        ]
        for each in report if second == "callback" else report[::-1]:
            each()
            if Return.objects.exists():
                continue
            late = BankTransaction.objects.get()
            assert state_of(late) == ("late", "")
            if not late.is_confirmed:
                decide("confirm", late, actor="staff:somsri")
            decide("record_manual_return", late, bank_reference="counter 7")
        held = BankTransaction.objects.get(resolution_state="")
        assert state_of(held) == ("duplicate", "")
        assert_is_blocked_from_credit(seller, held)


def assert_is_blocked_from_credit(seller: Seller, held: BankTransaction) -> None:
    assert seller.balance() == (0, 0)
    with pytest.raises(ActRefused, match="Probable duplicate"):
        decide("attach", held, payment_id=seller.shop.qr_code()["payment_id"])


# --- the rule for days -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "is_one_day"),
    [
        (MIDNIGHT, MIDNIGHT + DAY - MS, True),
        (MIDNIGHT - 100 * MS, MIDNIGHT, True),
        (MIDNIGHT - timedelta(minutes=5), MIDNIGHT, True),
        (MIDNIGHT - timedelta(minutes=5) - MS, MIDNIGHT, False),
        (NOON, NOON + DAY, False),
        (MIDNIGHT - MS, MIDNIGHT + timedelta(minutes=6), False),
        (MIDNIGHT.astimezone(UTC) + timedelta(hours=16), MIDNIGHT + timedelta(hours=18), True),
    ],
)
def test_python_and_database_agree_on_the_bank_day(one: datetime, other: datetime, is_one_day: bool) -> None:
    for first, second in ((one, other), (other, one)):
        found = rows.run("SELECT reconciliation_same_bank_day(%s, %s)", [first, second]).fetchone()
        assert deduplication.is_same_bank_day(first, second) is is_one_day
        assert found == (is_one_day,)
        since, until = deduplication.bank_day_range([first])
        assert since <= second < until or not is_one_day
