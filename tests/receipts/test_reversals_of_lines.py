"""What a bank takes back is found also where a statement told of one side and a message of the other."""

from datetime import datetime
from typing import Any

import pytest

from core import clock
from payments.models import Payment
from receipts import returns
from receipts.models import Receipt
from receipts.returns import NoSender
from tests.receipts.cast import Till, decide, now_of, reversal_of, suspense
from tests.receipts.statements.cast import bot, line_of, load, minutes_ago

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
REVERSED, WAITS = ("reversed", ""), ("unmatched", "")


@pytest.fixture
def code(till: Till) -> dict[str, Any]:
    return till.shop.qr_code()


@pytest.fixture
def paid_at() -> datetime:
    """Whole seconds, as statements tell them."""
    return clock.now().replace(microsecond=0)


def by_line(*lines: bytes) -> list[Receipt]:
    """The receipts that these lines made or joined, in their order."""
    load(bot(*lines))
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
