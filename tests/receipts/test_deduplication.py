"""Callback, inquiry and statement line of one movement are one bank transaction, whatever their times are."""

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from itertools import permutations
from typing import Any

import pytest
import time_machine

import banks
from banks import Question
from core import clock, rows
from core.clock import BANGKOK
from merchants.models import LateMoney, Merchant
from receipts import acts, cases, inbox, joining, services
from receipts.acts import NotPossible
from receipts.models import Deed, Notice, Receipt, Return, Source, StatementLine, Waiting
from tests.banks.scb_stand_in import BILLER, REFERENCE, confirmation, opened, success, transaction
from tests.receipts.cast import Till, decide, now_of, parsed, suspense
from tests.receipts.staff import LIST, page_of, read, staff
from tests.receipts.statements.cast import bot, line_of, load
from tests.refunds.test_guard import sqlstate
from tests.transfers.conftest import served_by

__all__ = ["served_by"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
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


def ask(notice: dict[str, Any]) -> None:
    """The bank tells it in answer to an inquiry."""
    receipt = inbox.accept(
        bank="sandbox", body=b"{}", notice=parsed(notice), now=clock.now(), source=Source.INQUIRY
    )
    services.hear(receipt, now=clock.now())


def notice_of(till: Till, code: dict[str, Any], paid_at: datetime, name: str) -> dict[str, Any]:
    return till.bank.notice(code, paid_at=paid_at, transaction_id=name)


@pytest.mark.parametrize("order", list(permutations(["callback", "inquiry", "line"])), ids="-".join)
@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_three_sources_in_any_order_are_one_bank_transaction(
    till: Till, times: tuple[datetime, datetime, datetime], order: tuple[str, ...]
) -> None:
    code = till.shop.qr_code()
    by_callback, by_inquiry, by_line = times
    report: dict[str, Callable[[], object]] = {
        "callback": lambda: till.bank.post(notice_of(till, code, by_callback, "BANKID1")),
        "inquiry": lambda: ask(notice_of(till, code, by_inquiry, "BANKID1")),
        "line": lambda: load(bot(line_of(code, by_line))),
    }
    for source in order:
        report[source]()
    receipt = Receipt.objects.get()
    assert (receipt.outcome, receipt.told_id) == ("applied", "BANKID1")
    assert StatementLine.objects.get().receipt == receipt
    assert not Waiting.objects.exists()
    assert not Notice.objects.filter(verdict="conflict").exists()
    assert till.balance() == (150_000, 0)


@pytest.mark.parametrize("apart", [timedelta(minutes=6), DAY])
def test_one_transaction_id_on_two_bank_days_is_a_conflict(till: Till, apart: timedelta) -> None:
    code = till.shop.qr_code()
    for paid_at in (MIDNIGHT - SECOND, MIDNIGHT - SECOND + apart):
        till.bank.post(notice_of(till, code, paid_at, "BANKID1"))
    assert [waiting.why for waiting in Waiting.objects.all()] == ["conflict"]


def test_scb_inquiry_with_milliseconds_repeats_its_callback(till: Till) -> None:
    """Its callback tells whole seconds."""
    with opened() as bank:
        bank.knows(
            "2026-11-21", success([transaction(transactionDateandTime="2026-11-21T11:30:58.660+07:00")])
        )
        scb = banks.get("scb", bank.link)
        at = datetime(2026, 11, 21, 4, 30, tzinfo=UTC)
        asked = Question(BILLER, REFERENCE, 150_000, at, at + timedelta(minutes=15))
        (answer,) = scb.inquire(asked).notices
        callback = scb.parse_notice(confirmation())
    assert isinstance(callback, banks.Notice)
    assert answer.paid_at - callback.paid_at == 660 * MS
    for notice, source in ((callback, Source.CALLBACK), (answer, Source.INQUIRY)):
        receipt = inbox.accept(bank="scb", body=b"{}", notice=notice, now=clock.now(), source=source)
        services.hear(receipt, now=clock.now())
    assert list(Notice.objects.order_by("received_at").values_list("verdict", flat=True)) == ["new", "repeat"]


# --- what proves that there are two ------------------------------------------------------------------------


def test_two_transaction_ids_are_two_until_a_statement_has_one_line(till: Till) -> None:
    code = till.shop.qr_code()
    till.bank.post(notice_of(till, code, NOON, "BANKID1"))
    second = till.told(code, paid_at=NOON + timedelta(minutes=3))
    assert Deed.SENT_BACK in acts.possible(second)
    first_line, second_line = line_of(code, NOON), line_of(code, NOON + timedelta(minutes=3))
    load(bot(first_line))
    assert_is_blocked(till, second, "two transaction ids, but its statement has one line")
    load(bot(first_line, second_line))
    assert_can_be_sent_back(second)


def test_one_statement_line_between_two_transaction_ids_blocks_whichever_waits(till: Till) -> None:
    code = till.shop.qr_code()
    load(bot(line_of(code, NOON)))
    till.bank.post(notice_of(till, code, NOON + 2 * SECOND, "BANKID1"))
    second = till.told(code, paid_at=NOON + timedelta(minutes=3))
    assert Receipt.objects.count() == 2
    assert_is_blocked(till, second, "one line for both")


@pytest.mark.parametrize("line_first", [True, False])
@pytest.mark.parametrize("days", [1, 4])
def test_line_and_callback_of_different_days_are_probably_the_same(
    till: Till, days: int, line_first: bool
) -> None:
    code = till.shop.qr_code()
    by_line, by_callback = NOON - days * DAY, notice_of(till, code, NOON, "BANKID1")
    report: list[Callable[[], object]] = [
        lambda: load(bot(line_of(code, by_line))),
        lambda: till.bank.post(by_callback),
    ]
    for each in report if line_first else report[::-1]:
        each()
    held = Receipt.objects.get(outcome="duplicate")
    assert_is_blocked(till, held, "one of them is only a statement line")


def test_second_transaction_id_unblocks_sending_back(till: Till) -> None:
    code = till.shop.qr_code()
    load(bot(line_of(code, NOON - DAY)))
    held = till.told(code, paid_at=NOON)
    assert_is_blocked(till, held, "Probably the same transaction")
    ask(notice_of(till, code, NOON - DAY, "BANKID2"))
    assert Receipt.objects.count() == 2
    assert_can_be_sent_back(held)


def test_second_statement_line_unblocks_sending_back(till: Till) -> None:
    code = till.shop.qr_code()
    load(bot(line_of(code, NOON - DAY)))
    held = till.told(code, paid_at=NOON)
    assert_is_blocked(till, held, "Probably the same transaction")
    load(bot(line_of(code, NOON + SECOND)))
    assert Receipt.objects.count() == 2
    assert_can_be_sent_back(held)


def test_other_amounts_and_references_are_other_money(till: Till) -> None:
    code = till.shop.qr_code()
    load(bot(line_of(code, NOON - DAY)))
    for other in (till.told(code, satang=149_999, paid_at=NOON), till.unmatched(paid_at=NOON)):
        assert_can_be_sent_back(other)


def assert_is_blocked(till: Till, held: Receipt, reason: str) -> None:
    """In the console, in the services and in the database; nothing changes."""
    before = now_of(held)
    assert acts.possible(held) <= {Deed.CONFIRMED, Deed.MERGED}
    assert reason in cases.of([held.id])[held.id].sentence
    payment_id = till.shop.qr_code()["payment_id"]
    for deed, more in (
        ("send_back", {}),
        ("send_back_by_hand", {"bank_reference": "counter 7"}),
        ("attach", {"payment_id": payment_id}),
    ):
        with pytest.raises(NotPossible, match=r"^Probably the same transaction as rcp_"):
            decide(deed, held, **more)
    resolve = (
        "UPDATE receipts_receipt SET resolution = %s, resolved_at = now(), payment_id = %s WHERE id = %s"
    )
    for resolution in ("sending_back", "sent_back", "accepted"):
        assert sqlstate(resolve, resolution, held.payment_id, held.id) == CHECK_VIOLATION
    assert sqlstate(INSERT_RETURN, held.id) == CHECK_VIOLATION
    assert (now_of(held), Return.objects.count()) == (before, 0)


RESOLVE = "UPDATE receipts_receipt SET resolution = %s, resolved_at = now() WHERE id = %s"
INSERT_RETURN = """
INSERT INTO receipts_return (
    id, receipt_id, amount, route, status, by_hand, bank_reference, failure_code, created_at
)
SELECT 'rtn_attack', id, amount, 'bank:sandbox', 'pending', false, '', '', now()
FROM receipts_receipt WHERE id = %s
"""


def assert_can_be_sent_back(held: Receipt) -> None:
    decide("send_back_by_hand", held, bank_reference="counter 7")
    assert now_of(held)[1] == "sent_back"


def test_console_shows_probably_the_same_transaction_without_a_button_to_send_it_back(till: Till) -> None:
    code = till.shop.qr_code()
    load(bot(line_of(code, NOON - DAY)))
    held = till.told(code, paid_at=NOON)
    client = staff("malee", "view_receipt", "resolve_receipt")
    assert "Probably the same transaction as" in read(client, LIST)
    page = read(client, page_of(held.id))
    assert "Probably the same transaction as" in page and Receipt.objects.get(source="statement").id in page
    assert "/act/send-back" not in page and "/act/by-hand" not in page


# --- late money --------------------------------------------------------------------------------------------


def test_policy_does_not_accept_late_money_that_is_probably_counted(till: Till) -> None:
    code, late = till.shop.qr_code(expiry_minutes=1), clock.now() + timedelta(minutes=5)
    load(bot(line_of(code, late + DAY)))
    assert now_of(Receipt.objects.get()) == ("late", "")
    Merchant.objects.filter(pk=till.shop.merchant.id).update(late_money=LateMoney.ACCEPT)
    held = till.told(code, paid_at=late)
    assert (now_of(held), suspense(), till.balance()) == (("late", ""), 300_000, (0, 0))


@pytest.mark.parametrize("second", ["callback", "line"])
def test_payment_does_not_succeed_by_money_that_was_sent_back_as_late(till: Till, second: str) -> None:
    with time_machine.travel(clock.now(), tick=False) as machine:
        code, made_at = till.shop.qr_code(expiry_minutes=1), clock.now()
        by_callback = till.bank.notice(code, paid_at=made_at if second == "callback" else made_at + DAY)
        by_line = line_of(code, made_at + DAY if second == "callback" else made_at)
        machine.shift(2 * DAY)
        report: list[Callable[[], object]] = [
            lambda: load(bot(by_line)),
            lambda: till.bank.post(by_callback),
        ]
        for each in report if second == "callback" else report[::-1]:
            each()
            if Return.objects.exists():
                continue
            late = Receipt.objects.get()
            assert now_of(late) == ("late", "")
            if not late.is_confirmed:
                decide("confirm", late, by="somsri")
            decide("send_back_by_hand", late, bank_reference="counter 7")
        held = Receipt.objects.get(resolution="")
        assert now_of(held) == ("duplicate", "")
        assert_is_blocked_from_credit(till, held)


def assert_is_blocked_from_credit(till: Till, held: Receipt) -> None:
    assert till.balance() == (0, 0)
    with pytest.raises(NotPossible, match="Probably the same transaction"):
        decide("attach", held, payment_id=till.shop.qr_code()["payment_id"])


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
        found = rows.run("SELECT receipts_in_one_bank_day(%s, %s)", [first, second]).fetchone()
        assert joining.in_one_bank_day(first, second) is is_one_day
        assert found == (is_one_day,)
        since, until = joining.bank_days([first])
        assert since <= second < until or not is_one_day
