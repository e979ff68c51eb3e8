"""Write-offs: the operator's loss when a bank reverses money that has left, until it can be recovered."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from audit_trail.acts import ActRefused
from banks import ReportedTransfer, TransferResult
from core import clock
from core.clock import BANGKOK
from ledger import accounts
from ledger.queries import read_balances as read_accounts
from reconciliation.exceptions.resolution_records import AlreadyResolved
from reconciliation.matching import intake, order_completion
from reconciliation.models import BankTransaction, ReconciliationException, Resolution, ResolutionType
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, new_client, open_shop
from tests.reconciliation.builders import (
    NOTE,
    RESOLVES,
    Seller,
    decide,
    exception_url,
    get_page,
    latest_return,
    parse,
    postings_of,
    reversal_of,
    run_returns,
    staff_client,
    state_of,
    suspense,
)
from tests.reconciliation.exceptions.test_acts_in_console import act_page
from tests.reconciliation.statements.statement_files import Imported, bot_file, credit_line, import_file
from tests.staff_acts import act_form
from tests.transfers.builders import Bank
from transfers import services as transfers

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
Serving = Callable[..., Bank]
DONE, REFUSED, UNDER_WAY = (
    TransferResult("succeeded", "b-1"),
    TransferResult("failed", "b-1"),
    TransferResult("processing", "b-1"),
)
LOST, REVERSED, WAITS = ("unmatched", "written_off"), ("reversed", ""), ("unmatched", "")


def losses() -> int:
    return sum(read_accounts([accounts.WRITE_OFFS, accounts.SANDBOX_WRITE_OFFS], None).values())


def taken_twice(seller: Seller, served_by: Serving) -> tuple[BankTransaction, BankTransaction]:
    """Return a credit that was returned to its payer, and the open reversal of it."""
    served_by(sends=[UNDER_WAY], inquiries=[DONE])
    credit = seller.unmatched()
    decide("send_back", credit)
    run_returns()
    reversal = seller.reverse(credit)
    run_returns()
    assert (state_of(credit), state_of(reversal)) == (("unmatched", "sent_back"), WAITS)
    return credit, reversal


def test_money_sent_twice_is_written_off(seller: Seller, served_by: Serving) -> None:
    _, reversal = taken_twice(seller, served_by)
    decide("write_off", reversal)
    assert (state_of(reversal), losses(), suspense()) == (LOST, -150_000, 0)
    assert postings_of(reversal.id) == [("written_off", 150_000)]
    resolution = Resolution.objects.get(subject_id=reversal.id)
    assert (resolution.type, resolution.actor) == (ResolutionType.WRITTEN_OFF, "staff:malee")
    assert (resolution.note, resolution.created_at) == (NOTE, reversal.resolved_at)
    assert not ReconciliationException.objects.exists()


def test_merchant_is_not_debited_for_a_reversal_above_the_credit(seller: Seller) -> None:
    credit = seller.sale()
    reversal = seller.reverse(credit, 150_001)
    decide("write_off", reversal)
    assert (state_of(reversal), losses()) == (LOST, -150_001)
    assert seller.funds() == {"available": 150_000, "reserved": 0}
    assert seller.shop.payment(str(credit.payment_id))["status"] == "succeeded"


def test_second_write_off_is_refused_and_booked_once(seller: Seller, served_by: Serving) -> None:
    _, reversal = taken_twice(seller, served_by)
    decide("write_off", reversal)
    for action in ("write_off", "dismiss"):
        with pytest.raises(AlreadyResolved, match="malee has already resolved this: written off"):
            decide(action, reversal, actor="staff:somsak")
    assert losses() == -150_000
    dismissed = seller.reverse(seller.sale(), 150_001)
    decide("dismiss", dismissed)
    with pytest.raises(AlreadyResolved, match="malee has already resolved this: dismissed"):
        decide("write_off", dismissed)


def test_credits_and_completed_reversals_cannot_be_written_off(seller: Seller) -> None:
    credit = seller.sale()
    for bank_transaction in (seller.unmatched(), credit, seller.reverse(credit)):
        before = state_of(bank_transaction)
        with pytest.raises(ActRefused, match="Only a reversal that could not be covered"):
            decide("write_off", bank_transaction)
        assert (state_of(bank_transaction), losses()) == (before, 0)


def test_reversal_covered_by_the_balance_cannot_be_written_off(seller: Seller) -> None:
    """The process ended after it stored the notification."""
    credit = seller.sale()
    notification = parse(reversal_of(credit))
    reversal = intake.receive(bank="sandbox", body=b"{}", notification=notification, now=clock.now())
    with pytest.raises(ActRefused):
        decide("write_off", reversal)
    assert (state_of(reversal), losses(), seller.funds()) == (REVERSED, 0, {"available": 0, "reserved": 0})


# --- a loss ends -------------------------------------------------------------------------------------------


def test_write_off_is_recovered_when_the_return_comes_back(seller: Seller, served_by: Serving) -> None:
    credit, reversal = taken_twice(seller, served_by)
    decide("write_off", reversal)
    transfers.apply_notification(
        ReportedTransfer(latest_return(credit).id, "returned"),
        order_completion.HANDLERS["rtn"],
        now=clock.now(),
    )
    assert (state_of(reversal), state_of(credit)) == (REVERSED, ("unmatched", "taken_back"))
    assert (losses(), suspense()) == (0, 0)
    assert sorted(postings_of(reversal.id)) == [
        ("recovered", 150_000), ("reversal", 150_000), ("written_off", 150_000),
    ]  # fmt: skip


def test_repeated_reversal_does_not_change_a_write_off(seller: Seller, served_by: Serving) -> None:
    credit, reversal = taken_twice(seller, served_by)
    decide("write_off", reversal)
    assert seller.reverse(credit, paid_at=reversal.paid_at.astimezone(BANGKOK).isoformat()).id == reversal.id
    assert (state_of(reversal), losses()) == (LOST, -150_000)


def test_early_write_off_is_recovered_when_the_return_fails(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[REFUSED])
    decide("send_back", credit := seller.unmatched())
    run_returns()
    decide("write_off", reversal := seller.reverse(credit))
    assert losses() == -150_000
    run_returns()
    assert (state_of(reversal), losses(), suspense()) == (REVERSED, 0, 0)


@pytest.mark.parametrize("by_line", [False, True])
def test_write_off_is_recovered_when_the_credit_is_reported(seller: Seller, by_line: bool) -> None:
    code, paid_at = seller.shop.qr_code(), clock.now().replace(microsecond=0)
    notification = seller.bank.notification(code, paid_at=paid_at)
    seller.bank.post(notification | {"type": "reversal"})
    reversal = BankTransaction.objects.get()
    decide("write_off", reversal)
    reported: Imported | Any = (
        import_file(bot_file(credit_line(code, paid_at))) if by_line else seller.bank.post(notification)
    )
    assert reported and (state_of(reversal), losses()) == (REVERSED, 0)
    assert seller.funds() == {"available": 0, "reserved": 0}
    assert seller.shop.payment(code["payment_id"])["status"] == "refunded"


def test_partial_write_off_leaves_the_remaining_amount_open(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[DONE])
    sent, accepted = seller.unmatched(), seller.mismatch(149_900)
    for credit in (sent, accepted):
        decide("write_off", seller.reverse(credit, 50_000))
    assert losses() == -100_000
    decide("send_back", sent)
    decide("accept", accepted)
    run_returns()
    assert (state_of(sent)[1], losses(), suspense()) == ("sent_back", -50_000, 0)
    assert seller.funds() == {"available": 99_900, "reserved": 0}, "what is the merchant's now, the bank took"


# --- at the console, and at once ---------------------------------------------------------------------------


def test_staff_write_off_in_the_console_with_a_note(seller: Seller, served_by: Serving) -> None:
    _, reversal = taken_twice(seller, served_by)
    malee: Client = staff_client("malee", *RESOLVES)
    assert "Write off" in get_page(malee, exception_url(reversal.id))
    resolution = act_page(reversal.id, "write-off")
    assert "1,500.00 THB left our account at sandbox a second time" in get_page(malee, resolution)
    assert malee.post(resolution, act_form(reason="")).status_code == 200
    assert losses() == 0
    assert malee.post(resolution, act_form(reason="The bank confirmed it."), follow=True).status_code == 200
    assert (losses(), Resolution.objects.latest("id").note) == (-150_000, "The bank confirmed it.")
    assert (
        "has already resolved this"
        in malee.post(resolution, act_form(reason="Again."), follow=True).content.decode()
    )
    assert losses() == -150_000


@pytest.mark.django_db(transaction=True)
def test_eight_concurrent_write_offs_count_once(served_by: Serving) -> None:
    seller = Seller(open_shop("Race"), SandboxBankClient(new_client()))
    _, reversal = taken_twice(seller, served_by)

    def click() -> bool:
        try:
            decide("write_off", reversal)
        except AlreadyResolved:
            return False
        return True

    assert sum(run_concurrently(*[click] * 8)) == 1
    assert (losses(), Resolution.objects.filter(subject_id=reversal.id).count()) == (-150_000, 1)


@pytest.mark.django_db(transaction=True)
def test_write_off_during_a_bounced_return_is_recovered(served_by: Serving) -> None:
    seller = Seller(open_shop("Race"), SandboxBankClient(new_client()))
    for _ in range(10):
        credit, reversal = taken_twice(seller, served_by)
        notification = ReportedTransfer(latest_return(credit).id, "returned")

        def book(reversal: BankTransaction = reversal) -> None:
            try:
                decide("write_off", reversal)
            except ActRefused:
                return

        def come_back(notification: ReportedTransfer = notification) -> None:
            transfers.apply_notification(notification, order_completion.HANDLERS["rtn"], now=clock.now())

        run_concurrently(book, come_back)
        assert (state_of(reversal), state_of(credit)[1]) == (REVERSED, "taken_back")
        assert (losses(), suspense()) == (0, 0)
