"""Reversals match their credits if a statement reports one and a notification the other."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from core import clock
from core.clock import BANGKOK
from payments.models import Payment
from reconciliation.matching import returns
from reconciliation.matching.refusals import NoWayBack
from reconciliation.models import BankNotification, BankTransaction
from tests.reconciliation.builders import Seller, decide, reversal_of, state_of, suspense
from tests.reconciliation.statements.statement_files import (
    bot_file,
    confirm_all_transactions,
    credit_line,
    import_file,
    minutes_ago,
)

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean", "old_codes")]
Notification = dict[str, Any]
REVERSED, WAITS = ("reversed", ""), ("unmatched", "")


@pytest.fixture
def code(seller: Seller) -> dict[str, Any]:
    return seller.shop.qr_code()


@pytest.fixture
def paid_at() -> datetime:
    """An instant in whole seconds, because statements have no fractions."""
    return clock.now().replace(microsecond=0)


def by_line(*lines: bytes) -> list[BankTransaction]:
    """Import and confirm these lines. Return their bank transactions in the order of the lines."""
    import_file(bot_file(*lines))
    confirm_all_transactions()
    return list(
        BankTransaction.objects.filter(statement_line__isnull=False).order_by("statement_line__line_number")
    )


def test_reversal_by_bank_id_finds_credit_of_a_statement_line(
    seller: Seller, code: dict[str, Any], paid_at: datetime
) -> None:
    (credit,) = by_line(credit_line(code, paid_at))
    assert (state_of(credit)[0], seller.balance()) == ("applied", (150_000, 0))
    seller.bank.post(reversal_of(credit, transaction_id="THEBANKSOWNID0000000"))
    reversal = BankTransaction.objects.get(kind="reversal")
    assert (state_of(reversal), seller.funds()) == (REVERSED, {"available": 0, "reserved": 0})


def test_statement_payment_has_no_bank_id_to_void(
    seller: Seller, code: dict[str, Any], paid_at: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    (credit,) = by_line(credit_line(code, paid_at))
    assert Payment.objects.get().bank_reference is None
    monkeypatch.setattr("banks.is_void_only", lambda route: True)
    with pytest.raises(NoWayBack):
        returns.destination_of_payer(credit)


@pytest.mark.parametrize("was_attached", [True, False])
def test_ambiguous_reversal_is_applied_when_the_credit_gets_a_bank_id(
    seller: Seller, code: dict[str, Any], paid_at: datetime, was_attached: bool
) -> None:
    """The bank reverses one of two equal lines. A later notification names the reversed one."""
    by_line(credit_line(code, minutes_ago(1)), credit_line(code, paid_at))
    second = BankTransaction.objects.get(match_result="duplicate")
    reversal = seller.reverse(second, transaction_id="THEBANKSOWNID0000000")
    assert (state_of(reversal), suspense()) == (WAITS, 150_000)
    if was_attached:
        decide("attach", second, payment_id=seller.shop.qr_code()["payment_id"])
    named = seller.bank.notification(code, paid_at=second.paid_at, transaction_id="THEBANKSOWNID0000000")
    assert seller.bank.post(named).json() == {"status": "received"}
    assert state_of(reversal) == REVERSED
    assert (suspense(), seller.funds()) == (0, {"available": 150_000, "reserved": 0})


def test_reversal_line_finds_credit_of_a_notification(
    seller: Seller, code: dict[str, Any], paid_at: datetime
) -> None:
    seller.bank.notify(code, paid_at=paid_at)
    (reversal,) = by_line(credit_line(code, clock.now(), sign="D"))
    assert (state_of(reversal), seller.funds()) == (REVERSED, {"available": 0, "reserved": 0})


def test_reversal_line_finds_credit_after_a_later_notification_with_bank_id(
    seller: Seller, code: dict[str, Any], paid_at: datetime
) -> None:
    seller.bank.notify(code, paid_at=paid_at)
    seller.bank.notify(code, paid_at=paid_at, transaction_id="THEBANKSOWNID0000000")
    (reversal,) = by_line(credit_line(code, clock.now(), sign="D"))
    assert (state_of(reversal), suspense()) == (WAITS, 150_000)
    duplicate = BankTransaction.objects.get(bank_reference="THEBANKSOWNID0000000")
    seller.bank.post(reversal_of(duplicate))
    assert (state_of(reversal), state_of(duplicate)) == (REVERSED, ("duplicate", "taken_back"))
    assert (suspense(), seller.funds()) == (0, {"available": 150_000, "reserved": 0})
    assert BankTransaction.objects.filter(kind="reversal").count() == 1


@pytest.fixture
def paid_again(seller: Seller, code: dict[str, Any]) -> tuple[Notification, Notification, Notification]:
    """Return two equal credits of a code, and a reversal of the first between them."""
    first, second = (seller.bank.notification(code, paid_at=minutes_ago(minutes)) for minutes in (3, 1))
    return first, seller.bank.notification(code, **taken_back(first, minutes_ago(2))), second


def taken_back(credit: Notification, at: datetime) -> Notification:
    return {"type": "reversal", "transaction_id": credit["transaction_id"], "paid_at": at}


def file_of(code: dict[str, Any], *notifications: Notification) -> bytes:
    """Return a statement file with a line for each notification, in this order."""
    lines = [
        credit_line(
            code,
            datetime.fromisoformat(notification["paid_at"]),
            sign="CD"[notification["type"] == "reversal"],
        )
        for notification in notifications
    ]
    return bot_file(*lines)


def test_reversal_is_not_matched_with_a_later_credit(
    seller: Seller, code: dict[str, Any], paid_again: tuple[Notification, Notification, Notification]
) -> None:
    first, reversal, second = paid_again
    import_file(file_of(code, second))
    for notification in (reversal, second, first):
        seller.bank.post(notification)
    import_file(file_of(code, *paid_again))
    assert match_states() == [("duplicate", "taken_back"), REVERSED, ("applied", "")]
    assert seller.shop.payment(code["payment_id"])["status"] == "succeeded"
    assert (suspense(), seller.funds()) == (0, {"available": 150_000, "reserved": 0})


@pytest.mark.parametrize("newest_first", [True, False])
def test_reversal_reported_first_reverses_the_earlier_credit(
    seller: Seller,
    code: dict[str, Any],
    paid_again: tuple[Notification, Notification, Notification],
    newest_first: bool,
) -> None:
    first, reversal, second = paid_again
    seller.bank.post(reversal)
    import_file(file_of(code, *(reversed(paid_again) if newest_first else paid_again)))
    for notification in (second, first):
        seller.bank.post(notification)
    assert match_states() == [("duplicate", "taken_back"), REVERSED, ("applied", "")]
    assert (suspense(), seller.funds()) == (0, {"available": 150_000, "reserved": 0})


@pytest.mark.parametrize("newest_first", [True, False])
def test_reversal_reported_first_with_two_possible_credits_is_held(
    seller: Seller, code: dict[str, Any], newest_first: bool
) -> None:
    first, second = (seller.bank.notification(code, paid_at=minutes_ago(minutes)) for minutes in (3, 2))
    reversal = seller.bank.notification(code, **taken_back(second, minutes_ago(1)))
    seller.bank.post(reversal)
    notifications = [first, second, reversal]
    import_file(file_of(code, *(notifications[::-1] if newest_first else notifications)))
    confirm_all_transactions()
    assert match_states()[2] == WAITS
    seller.bank.post(second)
    assert match_states()[2] == REVERSED
    assert suspense() + seller.funds()["available"] == 150_000
    seller.bank.post(first)
    assert match_states()[2] == REVERSED


@pytest.mark.parametrize("newest_first", [True, False])
def test_statement_lines_pair_two_credits_with_two_reversals(
    seller: Seller,
    code: dict[str, Any],
    paid_again: tuple[Notification, Notification, Notification],
    newest_first: bool,
) -> None:
    notifications = [*paid_again, seller.bank.notification(code, **taken_back(paid_again[2], clock.now()))]
    import_file(file_of(code, *(notifications[::-1] if newest_first else notifications)))
    assert (match_states()[1], match_states()[3]) == (REVERSED, REVERSED)
    assert (suspense(), seller.funds()) == (0, {"available": 0, "reserved": 0})


def test_reversed_credit_is_not_reversed_again_by_the_next_line(
    seller: Seller, code: dict[str, Any], paid_again: tuple[Notification, Notification, Notification]
) -> None:
    first, reversal, second = paid_again
    import_file(file_of(code, first, reversal))
    seller.bank.post(reversal)
    seller.bank.post(seller.bank.notification(code, **taken_back(second, clock.now())))
    seller.bank.post(second)
    assert match_states() == [("applied", ""), REVERSED, ("duplicate", "taken_back"), REVERSED]
    assert (suspense(), seller.funds()) == (0, {"available": 0, "reserved": 0})


@pytest.mark.parametrize(("by_callback", "credit_first"), [(True, True), (True, False), (False, True)])
def test_reversal_notification_does_not_match_line_of_another_credit(
    seller: Seller,
    code: dict[str, Any],
    paid_again: tuple[Notification, Notification, Notification],
    by_callback: bool,
    credit_first: bool,
) -> None:
    first, debit, second = paid_again
    if by_callback:
        seller.bank.post(first)
    import_file(file_of(code, first, debit))
    notifications = [second, seller.bank.notification(code, **taken_back(second, clock.now()))]
    for notification in notifications if credit_first else notifications[::-1]:
        seller.bank.post(notification)
    assert match_states() == [("applied", ""), REVERSED, ("duplicate", "taken_back"), REVERSED]
    assert (suspense(), seller.funds()) == (0, {"available": 0, "reserved": 0})


def test_second_reversal_of_a_payment_is_an_exception(
    seller: Seller, code: dict[str, Any], paid_again: tuple[Notification, Notification, Notification]
) -> None:
    """The reversal of the second credit joins the debit line of the first; the two look the same."""
    first, debit, second = paid_again
    import_file(file_of(code, first, debit))
    for notification in (
        seller.bank.notification(code, **taken_back(second, clock.now())),
        second,
        debit,
        first,
    ):
        assert seller.bank.post(notification).status_code == 200
    assert match_states() == [("applied", ""), REVERSED, WAITS, ("duplicate", "")]
    assert (suspense(), seller.funds()) == (150_000, {"available": 0, "reserved": 0})


def test_reversal_notification_matches_line_of_the_named_credit(
    seller: Seller, code: dict[str, Any], paid_again: tuple[Notification, Notification, Notification]
) -> None:
    first, reversal, _ = paid_again
    import_file(bot_file(credit_line(code, minutes_ago(4), sign="D")))  # a reversal of an unknown credit
    import_file(file_of(code, first, reversal))
    for notification in (first, reversal):
        seller.bank.post(notification)
    assert match_states() == [WAITS, ("applied", ""), REVERSED]
    assert (
        BankTransaction.objects.get(
            later_bank_reference=first["transaction_id"], kind="reversal"
        ).match_result
        == "reversed"
    )


def test_reversal_line_in_the_same_second_reverses_the_credit(
    seller: Seller, code: dict[str, Any], paid_at: datetime
) -> None:
    seller.bank.notify(code, paid_at=paid_at + timedelta(milliseconds=500))
    (reversal,) = by_line(credit_line(code, paid_at, sign="D"))
    assert (state_of(reversal), seller.funds()) == (REVERSED, {"available": 0, "reserved": 0})


def test_reversal_in_the_same_second_reverses_credit_of_a_line(
    seller: Seller, code: dict[str, Any], paid_at: datetime
) -> None:
    """Some banks report a reversal with the time of its credit."""
    (credit,) = by_line(credit_line(code, paid_at))
    at = (paid_at + timedelta(milliseconds=1)).astimezone(BANGKOK).isoformat(timespec="milliseconds")
    reversal = seller.reverse(credit, transaction_id="THEBANKSOWNID0000000", paid_at=at)
    assert (state_of(reversal), seller.funds()) == (REVERSED, {"available": 0, "reserved": 0})


def match_states() -> list[tuple[str, str]]:
    """Return the states of all bank transactions by time. Assert that no notifications conflict."""
    assert not BankNotification.objects.filter(result="conflict").exists()
    return list(BankTransaction.objects.order_by("paid_at").values_list("match_result", "resolution_state"))
