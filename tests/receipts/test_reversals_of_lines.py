"""What a bank takes back is found also where a statement told of one side and a message of the other."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from core import clock
from core.clock import BANGKOK
from payments.models import Payment
from receipts import returns
from receipts.models import Notice, Receipt
from receipts.returns import NoSender
from tests.receipts.cast import Till, decide, now_of, reversal_of, suspense
from tests.receipts.statements.cast import bot, confirm_all, line_of, load, minutes_ago

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
Word = dict[str, Any]
REVERSED, WAITS = ("reversed", ""), ("unmatched", "")


@pytest.fixture
def code(till: Till) -> dict[str, Any]:
    return till.shop.qr_code()


@pytest.fixture
def paid_at() -> datetime:
    """Whole seconds, as statements tell them."""
    return clock.now().replace(microsecond=0)


def by_line(*lines: bytes) -> list[Receipt]:
    """The receipts that these lines made or joined, in their order; somebody confirmed them."""
    load(bot(*lines))
    confirm_all()
    return list(Receipt.objects.filter(statement_line__isnull=False).order_by("statement_line__number"))


def test_what_only_a_line_told_is_taken_back_by_its_banks_own_id(
    till: Till, code: dict[str, Any], paid_at: datetime
) -> None:
    (credit,) = by_line(line_of(code, paid_at))
    assert (now_of(credit)[0], till.balance()) == ("applied", (150_000, 0))
    till.bank.post(reversal_of(credit, transaction_id="THEBANKSOWNID0000000"))
    reversal = Receipt.objects.get(kind="reversal")
    assert (now_of(reversal), till.held()) == (REVERSED, {"available": 0, "reserved": 0})


def test_a_payment_by_a_line_has_no_id_to_be_taken_back_by(
    till: Till, code: dict[str, Any], paid_at: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    (credit,) = by_line(line_of(code, paid_at))
    assert Payment.objects.get().bank_transaction_id is None
    monkeypatch.setattr("banks.voids", lambda route: True)
    with pytest.raises(NoSender):
        returns.way_back(credit)


@pytest.mark.parametrize("was_attached", [True, False])
def test_a_reversal_that_could_mean_two_finds_its_credit_when_that_is_named(
    till: Till, code: dict[str, Any], paid_at: datetime, was_attached: bool
) -> None:
    """One of two lines alike was taken back; the bank's messages, which come later, tell which."""
    by_line(line_of(code, minutes_ago(1)), line_of(code, paid_at))
    second = Receipt.objects.get(outcome="duplicate")
    reversal = till.takes_back(second, transaction_id="THEBANKSOWNID0000000")
    assert (now_of(reversal), suspense()) == (WAITS, 150_000)
    if was_attached:
        decide("attach", second, payment_id=till.shop.qr_code()["payment_id"])
    named = till.bank.notice(code, paid_at=second.paid_at, transaction_id="THEBANKSOWNID0000000")
    assert till.bank.post(named).json() == {"status": "received"}
    assert now_of(reversal) == REVERSED
    assert (suspense(), till.held()) == (0, {"available": 150_000, "reserved": 0})


def test_a_line_of_a_reversal_finds_the_credit_that_a_message_told(
    till: Till, code: dict[str, Any], paid_at: datetime
) -> None:
    till.bank.tell(code, paid_at=paid_at)
    (reversal,) = by_line(line_of(code, clock.now(), sign="D"))
    assert (now_of(reversal), till.held()) == (REVERSED, {"available": 0, "reserved": 0})


def test_a_line_of_a_reversal_of_which_nobody_knows_the_credit_finds_it_when_its_bank_names_it(
    till: Till, code: dict[str, Any], paid_at: datetime
) -> None:
    till.bank.tell(code, paid_at=paid_at)
    till.bank.tell(code, paid_at=paid_at, transaction_id="THEBANKSOWNID0000000")
    (reversal,) = by_line(line_of(code, clock.now(), sign="D"))
    assert (now_of(reversal), suspense()) == (WAITS, 150_000)
    duplicate = Receipt.objects.get(bank_transaction_id="THEBANKSOWNID0000000")
    till.bank.post(reversal_of(duplicate))
    assert (now_of(reversal), now_of(duplicate)) == (REVERSED, ("duplicate", "taken_back"))
    assert (suspense(), till.held()) == (0, {"available": 150_000, "reserved": 0})
    assert Receipt.objects.filter(kind="reversal").count() == 1


@pytest.fixture
def twice(till: Till, code: dict[str, Any]) -> tuple[Word, Word, Word]:
    """The same money twice for a code, and between the two the bank took the first back."""
    first, second = (till.bank.notice(code, paid_at=minutes_ago(minutes)) for minutes in (3, 1))
    return first, till.bank.notice(code, **taken_back(first, minutes_ago(2))), second


def taken_back(credit: Word, at: datetime) -> Word:
    return {"type": "reversal", "transaction_id": credit["transaction_id"], "paid_at": at}


def told(code: dict[str, Any], *notices: Word) -> bytes:
    """The file with the lines of these notices, in this order."""
    lines = [
        line_of(code, datetime.fromisoformat(word["paid_at"]), sign="CD"[word["type"] == "reversal"])
        for word in notices
    ]
    return bot(*lines)


def test_what_came_after_a_reversal_is_not_the_credit_that_it_takes_back(
    till: Till, code: dict[str, Any], twice: tuple[Word, Word, Word]
) -> None:
    first, reversal, second = twice
    load(told(code, second))
    for word in (reversal, second, first):
        till.bank.post(word)
    load(told(code, *twice))
    assert fates() == [("duplicate", "taken_back"), REVERSED, ("applied", "")]
    assert till.shop.payment(code["payment_id"])["status"] == "succeeded"
    assert (suspense(), till.held()) == (0, {"available": 150_000, "reserved": 0})


@pytest.mark.parametrize("newest_first", [True, False])
def test_a_reversal_that_was_told_first_takes_back_what_came_before_it(
    till: Till, code: dict[str, Any], twice: tuple[Word, Word, Word], newest_first: bool
) -> None:
    first, reversal, second = twice
    till.bank.post(reversal)
    load(told(code, *(reversed(twice) if newest_first else twice)))
    for word in (second, first):
        till.bank.post(word)
    assert fates() == [("duplicate", "taken_back"), REVERSED, ("applied", "")]
    assert (suspense(), till.held()) == (0, {"available": 150_000, "reserved": 0})


@pytest.mark.parametrize("newest_first", [True, False])
def test_a_reversal_that_was_told_first_and_fits_two_lines_waits_for_the_credits_name(
    till: Till, code: dict[str, Any], newest_first: bool
) -> None:
    first, second = (till.bank.notice(code, paid_at=minutes_ago(minutes)) for minutes in (3, 2))
    reversal = till.bank.notice(code, **taken_back(second, minutes_ago(1)))
    till.bank.post(reversal)
    words = [first, second, reversal]
    load(told(code, *(words[::-1] if newest_first else words)))
    confirm_all()
    assert fates()[2] == WAITS
    till.bank.post(second)
    assert fates()[2] == REVERSED
    assert suspense() + till.held()["available"] == 150_000
    till.bank.post(first)
    assert fates()[2] == REVERSED


@pytest.mark.parametrize("newest_first", [True, False])
def test_lines_alone_tell_which_credit_each_of_two_reversals_takes_back(
    till: Till, code: dict[str, Any], twice: tuple[Word, Word, Word], newest_first: bool
) -> None:
    words = [*twice, till.bank.notice(code, **taken_back(twice[2], clock.now()))]
    load(told(code, *(words[::-1] if newest_first else words)))
    assert (fates()[1], fates()[3]) == (REVERSED, REVERSED)
    assert (suspense(), till.held()) == (0, {"available": 0, "reserved": 0})


def test_a_credit_that_was_taken_back_already_is_not_what_the_next_reversal_takes(
    till: Till, code: dict[str, Any], twice: tuple[Word, Word, Word]
) -> None:
    first, reversal, second = twice
    load(told(code, first, reversal))
    till.bank.post(reversal)
    till.bank.post(till.bank.notice(code, **taken_back(second, clock.now())))
    till.bank.post(second)
    assert fates() == [("applied", ""), REVERSED, ("duplicate", "taken_back"), REVERSED]
    assert (suspense(), till.held()) == (0, {"available": 0, "reserved": 0})


@pytest.mark.parametrize(("by_callback", "credit_first"), [(True, True), (True, False), (False, True)])
def test_a_reversal_is_not_the_debit_that_took_back_another_credit(
    till: Till, code: dict[str, Any], twice: tuple[Word, Word, Word], by_callback: bool, credit_first: bool
) -> None:
    first, debit, second = twice
    if by_callback:
        till.bank.post(first)
    load(told(code, first, debit))
    words = [second, till.bank.notice(code, **taken_back(second, clock.now()))]
    for word in words if credit_first else words[::-1]:
        till.bank.post(word)
    assert fates() == [("applied", ""), REVERSED, ("duplicate", "taken_back"), REVERSED]
    assert (suspense(), till.held()) == (0, {"available": 0, "reserved": 0})


def test_a_payment_is_taken_back_once_and_a_second_time_is_for_staff(
    till: Till, code: dict[str, Any], twice: tuple[Word, Word, Word]
) -> None:
    """The bank's word about the second money joined the debit of the first, for nothing told them apart."""
    first, debit, second = twice
    load(told(code, first, debit))
    for word in (till.bank.notice(code, **taken_back(second, clock.now())), second, debit, first):
        assert till.bank.post(word).status_code == 200
    assert fates() == [("applied", ""), REVERSED, WAITS, ("duplicate", "")]
    assert (suspense(), till.held()) == (150_000, {"available": 0, "reserved": 0})


def test_a_reversal_is_the_debit_that_took_back_the_credit_it_names(
    till: Till, code: dict[str, Any], twice: tuple[Word, Word, Word]
) -> None:
    first, reversal, _ = twice
    load(bot(line_of(code, minutes_ago(4), sign="D")))  # of what nobody knows
    load(told(code, first, reversal))
    for word in (first, reversal):
        till.bank.post(word)
    assert fates() == [WAITS, ("applied", ""), REVERSED]
    assert Receipt.objects.get(also_known_as=first["transaction_id"], kind="reversal").outcome == "reversed"


def test_a_debit_in_the_second_of_its_credit_takes_it_back(
    till: Till, code: dict[str, Any], paid_at: datetime
) -> None:
    till.bank.tell(code, paid_at=paid_at + timedelta(milliseconds=500))
    (reversal,) = by_line(line_of(code, paid_at, sign="D"))
    assert (now_of(reversal), till.held()) == (REVERSED, {"available": 0, "reserved": 0})


def test_a_reversal_in_the_second_of_a_credit_that_a_line_told_takes_it_back(
    till: Till, code: dict[str, Any], paid_at: datetime
) -> None:
    """Some banks tell a reversal with the time of its credit."""
    (credit,) = by_line(line_of(code, paid_at))
    at = (paid_at + timedelta(milliseconds=1)).astimezone(BANGKOK).isoformat(timespec="milliseconds")
    reversal = till.takes_back(credit, transaction_id="THEBANKSOWNID0000000", paid_at=at)
    assert (now_of(reversal), till.held()) == (REVERSED, {"available": 0, "reserved": 0})


def fates() -> list[tuple[str, str]]:
    """Of each receipt, in the order of the bank's times. No message has contradicted another."""
    assert not Notice.objects.filter(verdict="conflict").exists()
    return list(Receipt.objects.order_by("paid_at").values_list("outcome", "resolution"))
