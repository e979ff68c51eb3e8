"""An over-payment pays its payment with the payment's amount, and only the excess goes back to the payer."""

from collections.abc import Callable
from html import unescape

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from pytest_django import Settings

from audit_trail.acts import ActRefused
from banks import ReportedTransfer, TransferResult
from core import clock
from ledger.models import Entry
from payments.models import Payment
from reconciliation.exceptions.resolution_records import AlreadyResolved
from reconciliation.matching.order_completion import HANDLERS
from reconciliation.models import BankTransaction, Excess, ReconciliationException, Resolution, Return
from refunds.destinations import Destination
from tests.approvals.builders import click
from tests.reconciliation.builders import (
    NOTE,
    Seller,
    decide,
    event_types_of,
    exception_url,
    get_page,
    latest_return,
    postings_of,
    run_returns,
    staff_client,
    state_of,
    suspense,
)
from tests.reconciliation.exceptions.test_acts_in_console import act_page
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file
from tests.staff_acts import act_form, acts_of_staff
from tests.timeline.builders import entries
from tests.transfers.builders import Bank
from transfers import services as transfers
from transfers.models import Transfer

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
Serving = Callable[..., Bank]
DONE, REFUSED, UNDER_WAY = (
    TransferResult("succeeded", "b-1"),
    TransferResult("failed", "b-1", "closed"),
    TransferResult("processing"),
)
ASKED, PAID, REST = 150_000, 300_000, 150_000


def excess_of(bank_transaction: BankTransaction) -> tuple[str, int]:
    excess = Excess.objects.get(bank_transaction=bank_transaction)
    return excess.resolution_state, excess.amount


def listed(bank_transaction: BankTransaction) -> list[tuple[str, int | None]]:
    return list(
        ReconciliationException.objects.filter(pk=bank_transaction.id).values_list("reason", "amount")
    )


def exceptions_of(seller: Seller, bank_transaction: BankTransaction) -> list[tuple[str, int]]:
    """What the merchant sees."""
    shown = seller.shop.payment(bank_transaction.payment_id or "")["exceptions"]
    return [(each["status"], each["amount"]) for each in shown]


def test_payment_receives_its_amount_and_the_excess_goes_back(seller: Seller, served_by: Serving) -> None:
    bank, bank_transaction = served_by(sends=[DONE]), seller.mismatch(PAID)
    made = decide("return_excess", bank_transaction)
    order = Transfer.objects.get().order
    assert (order.amount, order.bank_code, order.account) == (REST, "014", "1234567890")
    assert (state_of(bank_transaction), excess_of(bank_transaction)) == (
        ("amount_mismatch", "accepted"),
        ("sending_back", REST),
    )
    payment = Payment.objects.get(pk=bank_transaction.payment_id)
    assert (payment.status, payment.received, payment.amount_received) == ("succeeded", ASKED, None)
    assert event_types_of(payment.id)[-1] == "payment.succeeded"
    assert (seller.funds()["available"], suspense(), listed(bank_transaction)) == (ASKED, REST, [])
    assert exceptions_of(seller, bank_transaction) == [("excess_sending_back", PAID)]
    run_returns(2)
    assert (bank.sent, excess_of(bank_transaction)) == ([made.id], ("sent_back", REST))
    assert (postings_of(made.id), suspense()) == ([("sent_back", REST)], 0)
    assert sum(Entry.objects.values_list("amount", flat=True)) == 0
    assert exceptions_of(seller, bank_transaction) == [("excess_sent_back", PAID)]
    assert Resolution.objects.get().type == "excess_sent_back"


def test_only_what_was_credited_can_be_refunded(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[DONE])
    bank_transaction = seller.mismatch(PAID)
    decide("return_excess", bank_transaction)
    run_returns()
    answer = seller.shop.post("/v1/refunds", {"payment_id": bank_transaction.payment_id, "amount": ASKED + 1})
    assert answer.json()["error"]["code"] == "refund_amount_exceeded"


def test_second_click_is_told_about_the_first(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[UNDER_WAY])
    bank_transaction = seller.mismatch(PAID)
    decide("return_excess", bank_transaction)
    for action in ("return_excess", "accept", "send_back"):
        with pytest.raises(AlreadyResolved):
            decide(action, bank_transaction)
    assert (Return.objects.count(), Resolution.objects.count()) == (1, 1)


@pytest.mark.parametrize("satang", [149_999, 1])
def test_too_little_money_has_no_excess(seller: Seller, satang: int) -> None:
    bank_transaction = seller.mismatch(satang)
    with pytest.raises(ActRefused, match="no excess"):
        decide("return_excess", bank_transaction)
    assert (state_of(bank_transaction), Excess.objects.count()) == (("amount_mismatch", ""), 0)


def test_expired_payment_can_be_paid_by_an_over_payment(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[DONE])
    code = seller.shop.qr_code(expiry_minutes=1)
    bank_transaction = seller.report(code, satang=PAID)
    Payment.objects.filter(pk=code["payment_id"]).update(expires_at=clock.now())
    decide("return_excess", bank_transaction)
    assert seller.shop.payment(code["payment_id"])["status"] == "succeeded"


def test_unconfirmed_over_payment_cannot_be_split(seller: Seller, served_by: Serving) -> None:
    served_by()
    code = seller.shop.qr_code()
    import_file(bot_file(credit_line(code, clock.now(), amount=PAID)))
    bank_transaction = BankTransaction.objects.get(payment_id=code["payment_id"])
    with pytest.raises(ActRefused, match="Only an uploaded statement"):
        decide("return_excess", bank_transaction)
    assert Excess.objects.count() == 0


def test_excess_of_a_failed_return_waits_for_another_decision(seller: Seller, served_by: Serving) -> None:
    served_by(sends=[REFUSED, REFUSED, DONE])
    bank_transaction = seller.mismatch(PAID)
    decide("return_excess", bank_transaction)
    for _ in range(2):
        run_returns()
        assert (latest_return(bank_transaction).status, excess_of(bank_transaction)) == ("failed", ("", REST))
        assert (listed(bank_transaction), suspense()) == ([("excess", REST)], REST)
        assert exceptions_of(seller, bank_transaction) == [("excess_open", PAID)]
        with pytest.raises(ActRefused):
            decide("accept", bank_transaction)
        decide("send_back", bank_transaction)
    run_returns()
    assert (excess_of(bank_transaction), suspense(), listed(bank_transaction)) == (("sent_back", REST), 0, [])
    assert seller.funds()["available"] == ASKED


def test_excess_that_comes_back_after_its_return_is_an_exception_again(
    seller: Seller, served_by: Serving
) -> None:
    served_by(sends=[DONE])
    bank_transaction = seller.mismatch(PAID)
    made = decide("return_excess", bank_transaction)
    run_returns()
    transfers.apply_notification(ReportedTransfer(made.id, "returned"), HANDLERS["rtn"], now=clock.now())
    assert (excess_of(bank_transaction), listed(bank_transaction), suspense()) == (
        ("", REST),
        [("excess", REST)],
        REST,
    )
    decide("record_manual_return", bank_transaction, bank_reference="counter 7")
    assert (excess_of(bank_transaction), suspense()) == (("sent_back", REST), 0)


@pytest.mark.parametrize("why", ["no account", "no sender"])
def test_excess_that_cannot_be_sent_waits_for_staff(
    seller: Seller, served_by: Serving, settings: Settings, why: str
) -> None:
    changes = {"payer_bank_code": "999"} if why == "no account" else {}
    bank_transaction = seller.mismatch(PAID, **changes)
    if why == "no account":
        served_by()
    else:
        settings.SANDBOX_BANK_SECRET = ""
    assert isinstance(decide("return_excess", bank_transaction), Excess)
    assert (excess_of(bank_transaction), listed(bank_transaction)) == (("", REST), [("excess", REST)])
    assert (seller.funds()["available"], suspense(), Return.objects.count()) == (ASKED, REST, 0)
    decide("record_manual_return", bank_transaction, bank_reference="counter 7")
    assert (excess_of(bank_transaction), suspense()) == (("sent_back", REST), 0)


def test_excess_to_another_account_needs_approval_above_the_limit(
    seller: Seller, served_by: Serving, settings: Settings
) -> None:
    bank = served_by(sends=[DONE])
    settings.APPROVAL_ITEM_LIMIT = REST - 1
    bank_transaction = seller.mismatch(PAID, payer_bank_code="999")
    decide("return_excess", bank_transaction)
    made = decide("send_back", bank_transaction, destination=Destination("004", "4051234567", "Somying"))
    run_returns()
    assert (bank.sent, excess_of(bank_transaction)) == ([], ("sending_back", REST))
    click(staff_client("somsri", "view_approval", "decide_approval"), "reject", made.id)
    assert (excess_of(bank_transaction), listed(bank_transaction), suspense()) == (
        ("", REST),
        [("excess", REST)],
        REST,
    )


def test_reversal_of_all_takes_the_credited_part_and_the_open_excess(
    seller: Seller, served_by: Serving
) -> None:
    served_by(sends=[REFUSED])
    bank_transaction = seller.mismatch(PAID)
    decide("return_excess", bank_transaction)
    run_returns()
    reversal = seller.reverse(bank_transaction)
    assert state_of(reversal)[0] == "reversed"
    assert (excess_of(bank_transaction), suspense(), seller.funds()["available"]) == (
        ("taken_back", REST),
        0,
        0,
    )
    assert seller.shop.payment(bank_transaction.payment_id or "")["status"] == "refunded"
    assert exceptions_of(seller, bank_transaction) == [("excess_taken_back", PAID)]


def test_reversal_of_all_cancels_a_return_that_was_not_sent(seller: Seller, served_by: Serving) -> None:
    bank, bank_transaction = served_by(sends=[DONE]), seller.mismatch(PAID)
    decide("return_excess", bank_transaction)
    reversal = seller.reverse(bank_transaction)
    run_returns()
    assert (bank.sent, state_of(reversal)[0], latest_return(bank_transaction).status) == (
        [],
        "reversed",
        "canceled",
    )
    assert (excess_of(bank_transaction), suspense(), seller.funds()["available"]) == (
        ("taken_back", REST),
        0,
        0,
    )


def test_reversal_of_all_waits_for_staff_while_the_excess_is_at_the_bank(
    seller: Seller, served_by: Serving
) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[UNDER_WAY, REFUSED])
    bank_transaction = seller.mismatch(PAID)
    decide("return_excess", bank_transaction)
    run_returns()
    reversal = seller.reverse(bank_transaction)
    assert (state_of(reversal), seller.funds()["available"]) == (("unmatched", ""), ASKED)
    run_returns(2)
    assert (state_of(reversal)[0], excess_of(bank_transaction)[0]) == ("reversed", "taken_back")
    assert (suspense(), seller.funds()["available"]) == (0, 0)


def test_reversal_of_the_rest_is_charged_after_the_excess_was_sent(
    seller: Seller, served_by: Serving
) -> None:
    served_by(sends=[DONE])
    bank_transaction = seller.mismatch(PAID)
    decide("return_excess", bank_transaction)
    run_returns()
    assert state_of(seller.reverse(bank_transaction, ASKED))[0] == "reversed"
    assert (excess_of(bank_transaction)[0], seller.funds()["available"], suspense()) == ("sent_back", 0, 0)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE reconciliation_excess SET amount = amount + 1",
        "UPDATE reconciliation_excess SET amount = amount - 1",
        "UPDATE reconciliation_excess SET resolution_state = 'merged', resolved_at = now()",
        "DELETE FROM reconciliation_excess",
        "UPDATE payments_payment SET amount_received = 300000 WHERE status = 'succeeded'",
        "UPDATE reconciliation_return SET amount = 300000",
        "UPDATE reconciliation_banktransaction SET resolution_state = '', resolved_at = NULL",
        """INSERT INTO reconciliation_return
           (id, bank_transaction_id, amount, route, status, is_manual, bank_reference, failure_code,
           created_at) SELECT 'rtn_x', bank_transaction_id, 150000, route, 'pending', false, '', '', now()
           FROM reconciliation_return""",
    ],
)
def test_database_refuses_to_change_the_parts(seller: Seller, served_by: Serving, sql: str) -> None:
    served_by()
    decide("return_excess", seller.mismatch(PAID))
    with pytest.raises(DatabaseError), transaction.atomic():
        run_sql(sql)


@pytest.mark.parametrize("amount", [1, REST, REST + 1, PAID])
def test_database_refuses_an_excess_of_money_that_was_credited(seller: Seller, amount: int) -> None:
    bank_transaction = seller.mismatch(PAID)
    decide("accept", bank_transaction)
    with pytest.raises(DatabaseError), transaction.atomic():
        Excess.objects.create(bank_transaction=bank_transaction, amount=amount, created_at=clock.now())
        run_sql("SET CONSTRAINTS ALL IMMEDIATE")


@pytest.mark.parametrize("amount", [1, REST - 1, REST + 1, PAID])
def test_database_refuses_a_return_of_another_amount_than_the_excess(
    seller: Seller, served_by: Serving, amount: int
) -> None:
    served_by()
    bank_transaction = seller.mismatch(PAID, payer_bank_code="999")
    decide("return_excess", bank_transaction)
    with pytest.raises(DatabaseError), transaction.atomic():
        Return.objects.create(
            id="rtn_x",
            bank_transaction=bank_transaction,
            amount=amount,
            route="bank:sandbox",
            created_at=clock.now(),
        )


def test_page_shows_both_amounts_before_the_decision(
    seller: Seller, malee: Client, served_by: Serving
) -> None:
    served_by()
    bank_transaction = seller.report(seller.shop.qr_code(amount=99_900), satang=199_800)
    url = act_page(bank_transaction.id, "return-excess")
    assert url in get_page(malee, exception_url(bank_transaction.id))
    text = unescape(get_page(malee, url))
    assert "999.00 THB are credited" in text
    assert "The excess of 999.00 THB goes back to the payer, Somchai Jaidee, account xxxxxx7890 at" in text
    assert Excess.objects.count() == 0
    for _ in range(2):
        answer = malee.post(url, act_form(reason=NOTE), follow=True)
        assert answer.status_code == 200
    assert excess_of(bank_transaction) == ("sending_back", 99_900)
    page = unescape(get_page(malee, exception_url(bank_transaction.id)))
    assert (
        "Of 1,998.00 THB, 999.00 THB are credited. The excess is 999.00 THB. 999.00 THB is on its way "
        "back to the payer." in page
    )
    acts = [each for each in acts_of_staff() if each.act == "exception_resolved"]
    assert [(each.actor, each.reason) for each in acts] == [("staff:malee", NOTE)]


def test_staff_without_the_permission_cannot_return_an_excess(seller: Seller, viewer: Client) -> None:
    bank_transaction = seller.mismatch(PAID)
    url = act_page(bank_transaction.id, "return-excess")
    assert viewer.post(url, act_form()).status_code == 403
    assert Excess.objects.count() == 0


def test_timeline_and_payment_page_tell_about_the_excess(
    seller: Seller, served_by: Serving, admin_client: Client
) -> None:
    served_by(sends=[REFUSED])
    bank_transaction = seller.mismatch(PAID)
    decide("return_excess", bank_transaction)
    run_returns()
    kinds = [each["type"] for each in entries(seller.shop, bank_transaction.payment_id or "")]
    assert {"staff.excess_sent_back", "return.failed", "payment.succeeded"} <= set(kinds)
    page = unescape(get_page(admin_client, f"/admin/payments/payment/{bank_transaction.payment_id}/change/"))
    assert "1,500.00 THB are credited. The excess is 1,500.00 THB." in page


def run_sql(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
