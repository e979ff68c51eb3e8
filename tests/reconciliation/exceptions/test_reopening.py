"""Staff reopen what was resolved by mistake, and can resolve it again."""

from functools import partial

import pytest
from django.test import Client

from audit_trail.acts import ActRefused
from core import clock
from reconciliation.exceptions.resolution_records import AlreadyResolved
from reconciliation.matching import order_completion
from reconciliation.models import BankNotification, BankTransaction, ReconciliationException, Resolution
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, new_client, open_shop
from tests.reconciliation.builders import (
    Seller,
    decide,
    exception_url,
    get_page,
    postings_of,
    run_returns,
    staff_client,
    state_of,
)
from tests.reconciliation.exceptions.test_acts_in_console import act_page, buttons
from tests.reconciliation.exceptions.test_resolution_races import deciding, done
from tests.reconciliation.exceptions.test_write_offs import (
    DONE,
    LOST,
    REFUSED,
    REVERSED,
    UNDER_WAY,
    WAITS,
    Serving,
    losses,
)
from tests.sqlstates import sqlstate
from tests.staff_acts import act_form
from tests.timeline.builders import types

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
DISMISSED, INTEGRITY, UNIQUE = ("unmatched", "dismissed"), "23000", "23505"
ACT = """
INSERT INTO reconciliation_resolution (subject_id, type, actor, note, reopen_count, request_id, created_at)
VALUES (%s, %s, 'malee', 'a mistake', %s, '', now())
"""


def orphan(seller: Seller) -> BankTransaction:
    """A reversal of more money than its credit. It cannot be applied."""
    return seller.reverse(seller.sale(), 150_001)


def actions(subject_id: str) -> list[tuple[str, int]]:
    return list(
        Resolution.objects.filter(subject_id=subject_id).order_by("id").values_list("type", "reopen_count")
    )


def test_reversal_dismissed_by_mistake_is_reopened_and_written_off(seller: Seller, malee: Client) -> None:
    reversal = orphan(seller)
    decide("dismiss", reversal)
    assert buttons(malee, reversal.id) == []
    assert "/do/reopen/" in get_page(malee, exception_url(reversal.id))
    text = malee.get(act_page(reversal.id, "reopen")).content.decode()
    assert "It waits for a decision again." in text
    malee.post(act_page(reversal.id, "reopen"), act_form(reason="the bank insists"))
    assert state_of(reversal) == WAITS
    assert ReconciliationException.objects.get().id == reversal.id
    decide("write_off", reversal)
    assert (state_of(reversal), losses()) == (LOST, -150_001)
    assert actions(reversal.id) == [("dismissed", 0), ("reopened", 1), ("written_off", 1)]
    opened = Resolution.objects.get(type="reopened")
    assert (opened.actor, opened.note) == ("staff:malee", "the bank insists")
    page = get_page(malee, exception_url(reversal.id))
    assert all(result in page for result in ("Dismissed", "Reopened", "the bank insists", "Written Off"))


def test_resolved_exception_is_linked_from_the_message_and_the_resolutions(
    seller: Seller, malee: Client
) -> None:
    reversal = orphan(seller)
    text = malee.post(act_page(reversal.id, "dismiss"), act_form(), follow=True).content.decode()
    link = f'<a href="{exception_url(reversal.id)}">1,500.01 THB at the sandbox bank</a>'
    assert f"Dismissed: no action needed. {link}" in text
    assert f'<a href="{exception_url(reversal.id)}">' in get_page(
        staff_client("boss", "view_resolution"), "/admin/reconciliation/resolution/"
    )


def test_reopened_write_off_is_recovered_and_can_be_written_off_again(seller: Seller, malee: Client) -> None:
    reversal = orphan(seller)
    decide("write_off", reversal)
    text = malee.get(act_page(reversal.id, "reopen")).content.decode()
    assert "The write-off of 1,500.01 THB is reversed" in text
    decide("reopen", reversal)
    assert (state_of(reversal), losses()) == (WAITS, 0)
    assert postings_of(reversal.id) == [("written_off", 150_001), ("recovered", 150_001)]
    for _ in range(2):
        decide("write_off", reversal)
        assert (state_of(reversal), losses()) == (LOST, -150_001)
        decide("reopen", reversal)
        assert (state_of(reversal), losses()) == (WAITS, 0)
    decide("dismiss", reversal)
    assert actions(reversal.id)[-1] == ("dismissed", 3)
    assert not ReconciliationException.objects.exists()


def test_reopened_reversal_is_applied_after_a_failed_return(seller: Seller, served_by: Serving) -> None:
    """The reversal was dismissed during a return, and then the return failed."""
    served_by(sends=[UNDER_WAY], inquiries=[UNDER_WAY, REFUSED])
    credit = seller.unmatched()
    decide("send_back", credit)
    run_returns()
    reversal = seller.reverse(credit)
    decide("dismiss", reversal)
    run_returns(2)
    assert (state_of(credit), state_of(reversal)) == (("unmatched", ""), DISMISSED)
    decide("reopen", reversal)
    assert (state_of(credit), state_of(reversal)) == (("unmatched", "taken_back"), REVERSED)


def test_message_is_reopened_and_dismissed_again(seller: Seller, malee: Client) -> None:
    seller.bank.post(b"garbage")
    notification = BankNotification.objects.get()
    for number in range(2):
        decide("dismiss", notification)
        assert not ReconciliationException.objects.exists()
        assert "/do/reopen/" in get_page(malee, exception_url(notification.id))
        decide("reopen", notification)
        assert ReconciliationException.objects.get().id == notification.id
        assert buttons(malee, notification.id) == ["dismiss"]
        assert actions(notification.id)[-2:] == [("dismissed", number), ("reopened", number + 1)]


def test_timeline_shows_the_reopening(seller: Seller) -> None:
    code = seller.shop.qr_code()
    reported = seller.bank.notification(code)
    for changes in ({}, {"amount": "1.23"}):
        seller.bank.post(reported | changes)
    notification = BankNotification.objects.get(result="conflict")
    for action in ("dismiss", "reopen"):
        decide(action, notification)
    assert types(seller.shop, code["payment_id"])[-2:] == ["staff.dismissed", "staff.reopened"]


def test_only_dismissed_merged_or_written_off_exceptions_can_be_reopened(
    seller: Seller, served_by: Serving
) -> None:
    served_by(sends=[DONE])
    seller.bank.post(b"garbage")
    sent_back, waits = seller.unmatched(), orphan(seller)
    decide("record_manual_return", sent_back, bank_reference="b")
    subjects = [
        seller.sale().id,
        sent_back.id,
        waits.id,
        BankNotification.objects.get(result="unreadable").id,
    ]
    subjects += [
        seller.refund(seller.paid())["refund_id"],
        BankNotification.objects.filter(result="new")[0].id,
    ]
    for subject_id in subjects:
        with pytest.raises(ActRefused, match="Only what was dismissed"):
            decide("reopen", subject_id)
    assert not Resolution.objects.filter(type="reopened").exists()


def test_second_reopening_is_refused_and_names_the_first_user(seller: Seller) -> None:
    reversal = orphan(seller)
    decide("dismiss", reversal)
    decide("reopen", reversal)
    with pytest.raises(AlreadyResolved, match="malee has already resolved this: reopened"):
        decide("reopen", reversal, actor="staff:somsak")


def test_reopening_needs_the_resolve_permission(seller: Seller) -> None:
    decide("dismiss", reversal := orphan(seller))
    viewer = staff_client("onlooker", "view_banktransaction")
    assert "/do/reopen/" not in get_page(viewer, exception_url(reversal.id))
    assert viewer.post(act_page(reversal.id, "reopen"), act_form()).status_code == 403
    assert state_of(reversal) == DISMISSED


def test_database_allows_one_reopening_of_a_resolved_exception(seller: Seller) -> None:
    reversal = orphan(seller)
    for action, round in (("reopened", 0), ("reopened", 1), ("dismissed", 1)):
        assert sqlstate(ACT, reversal.id, action, round) == INTEGRITY, (action, round)
    decide("dismiss", reversal)
    for action, round, state in (
        ("dismissed", 0, UNIQUE), ("written_off", 0, UNIQUE), ("written_off", 1, INTEGRITY),
        ("reopened", 2, INTEGRITY),
    ):  # fmt: skip
        assert sqlstate(ACT, reversal.id, action, round) == state, (action, round)
    decide("reopen", reversal)
    for action, round in (("reopened", 1), ("reopened", 2), ("dismissed", 0), ("dismissed", 2)):
        assert sqlstate(ACT, reversal.id, action, round) == INTEGRITY, (action, round)


# --- at the same moment ------------------------------------------------------------------------------------

races = pytest.mark.django_db(transaction=True)
ROUNDS = 10


@pytest.fixture
def busy() -> Seller:
    return Seller(open_shop("Race"), SandboxBankClient(new_client()))


@races
@pytest.mark.parametrize("ended", ["dismiss", "write_off"])
def test_eight_concurrent_reopenings_count_once(busy: Seller, ended: str) -> None:
    reversal = orphan(busy)
    decide(ended, reversal)
    assert done(run_concurrently(*[deciding("reopen", reversal)] * 8)) == 1
    assert (state_of(reversal), losses()) == (WAITS, 0)


@races
def test_eight_concurrent_reopenings_of_a_message_count_once(busy: Seller) -> None:
    busy.bank.post(b"garbage")
    notification = BankNotification.objects.get()
    decide("dismiss", notification)
    assert done(run_concurrently(*[deciding("reopen", notification)] * 8)) == 1
    assert done(run_concurrently(*[deciding("dismiss", notification)] * 8)) == 1
    assert not ReconciliationException.objects.exists()


@races
def test_concurrent_reopening_and_write_off_end_in_the_state_of_the_last_resolution(busy: Seller) -> None:
    reversal = orphan(busy)
    decide("dismiss", reversal)
    for _ in range(ROUNDS):
        run_concurrently(
            deciding("reopen", reversal), deciding("write_off", reversal), deciding("reopen", reversal)
        )
        is_lost = actions(reversal.id)[-1][0] == "written_off"
        assert (state_of(reversal), losses()) == ((LOST, -150_001) if is_lost else (WAITS, 0))
        if not is_lost:
            decide("dismiss", reversal)


@races
def test_reopening_during_a_failing_return_applies_the_reversal(busy: Seller, served_by: Serving) -> None:
    for _ in range(ROUNDS):
        served_by(sends=[UNDER_WAY], inquiries=[REFUSED])
        credit = busy.unmatched()
        decide("send_back", credit)
        run_returns()
        reversal = busy.reverse(credit)
        decide("write_off", reversal)
        run_concurrently(
            deciding("reopen", reversal), partial(order_completion.run_due_returns, now=clock.now)
        )
        assert (state_of(reversal), state_of(credit)[1], losses()) == (REVERSED, "taken_back", 0)
