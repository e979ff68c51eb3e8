"""The pages of refunds and withdrawals begin with how each stands, and what to do next."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.test import Client

from approvals import payout_accounts
from banks import ReportedTransfer, TransferResult
from core import clock as times
from refunds import completion as refunds
from tests.approvals.builders import add_payout_account, decide_approval
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import Seller, decide, staff_client
from tests.refunds.builders import NOBODY, PAYEE, send_due_refunds
from tests.transfers.builders import Bank
from tests.withdrawals.builders import send_due_withdrawals, withdrawn
from transfers import circuit_breakers, safe_mode, services as transfers
from transfers.circuit_breakers import Counterparty
from withdrawals import services as withdrawals

pytestmark = pytest.mark.slow

Serving = Callable[..., Bank]
BALANCE = "It is in the merchant's balance again."


@pytest.fixture
def seller(shop: Shop, bank: SandboxBankClient, clock: Any) -> Seller:
    return Seller(shop, bank)


def sentence(client: Client, path: str) -> tuple[str, str]:
    """The colour and the text of the sentence, without its links."""
    page = client.get(path)
    assert page.status_code == 200
    found = re.search(r'<p class="lead (\w+)">(.*?)</p>', page.text)
    assert found, path
    return found[1], unescape(re.sub("<[^>]+>", "", found[2])).strip()


def of_refund(client: Client, refund: dict[str, Any]) -> tuple[str, str]:
    return sentence(client, f"/admin/refunds/refund/{quote(refund['refund_id'])}/change/")


def of_withdrawal(client: Client, withdrawal: dict[str, Any]) -> tuple[str, str]:
    return sentence(client, f"/admin/withdrawals/withdrawal/{quote(withdrawal['withdrawal_id'])}/change/")


def a_refund(seller: Seller) -> dict[str, Any]:
    return seller.refund(seller.paid(100_000), reason="other")


def a_withdrawal(seller: Seller) -> dict[str, Any]:
    seller.paid(100_000)
    return withdrawn(seller.shop)


def report(made: dict[str, Any], status: Any) -> None:
    """The bank reports the end of an order by itself."""
    is_refund = "refund_id" in made
    handler = refunds.TRANSFER_HANDLER if is_refund else withdrawals.TRANSFER_HANDLER
    order_id = made["refund_id" if is_refund else "withdrawal_id"]
    transfers.apply_notification(ReportedTransfer(order_id, status, "b-1"), handler, now=times.now())


REPLIES = {
    "arrived": TransferResult("succeeded", "b-1"),
    "refused": TransferResult("failed", failure_code="invalid_account"),
    "under way": TransferResult("processing", "b-1"),
    "not reached": TransferResult("not_sent"),
}
ENDS = [
    ("arrived", "good", "1,000.00 THB {arrived} on 2026-11-21 12:00:00. Nothing is left to do."),
    (
        "refused",
        "bad",
        f"1,000.00 THB did not arrive: the account does not exist. {BALANCE} {{next}}",
    ),
    ("under way", "wait", "The bank has the order. It is asked at 12:00:01 whether the money arrived."),
    (
        "not reached",
        "wait",
        "The bank cannot be reached. The order is sent again at 12:00:05. See the order.",
    ),
]


@pytest.mark.parametrize(("answer", "tone", "text"), ENDS)
def test_page_says_what_the_bank_answered(
    seller: Seller, served_by: Serving, admin_client: Client, answer: str, tone: str, text: str
) -> None:
    served_by(sends=[REPLIES[answer]])
    refund, withdrawal = a_refund(seller), a_withdrawal(seller)
    for made, shown in ((refund, of_refund), (withdrawal, of_withdrawal)):
        assert shown(admin_client, made) == ("wait", "It is sent to the bank in a moment.")
    transfers.run_due("refund", refunds.TRANSFER_HANDLER, now=times.now)
    send_due_withdrawals()
    again = "Ask the customer for another account, and refund again. Open the payment."
    assert of_refund(admin_client, refund) == (
        tone,
        text.format(arrived="went back to the payer", next=again),
    )
    other = "The merchant can withdraw it to another account."
    assert of_withdrawal(admin_client, withdrawal) == (tone, text.format(arrived="arrived", next=other))


def test_details_of_a_failure_have_its_code_too(
    seller: Seller, served_by: Serving, admin_client: Client
) -> None:
    served_by(sends=[REPLIES["refused"]])
    refund, withdrawal = a_refund(seller), a_withdrawal(seller)
    transfers.run_due("refund", refunds.TRANSFER_HANDLER, now=times.now)
    send_due_withdrawals()
    for page in (
        f"refunds/refund/{quote(refund['refund_id'])}",
        f"withdrawals/withdrawal/{quote(withdrawal['withdrawal_id'])}",
        f"payments/payment/{quote(refund['payment_id'])}",
    ):
        content = admin_client.get(f"/admin/{page}/change/").content.decode()
        assert "the account does not exist (invalid_account)" in content


def test_order_without_an_answer_for_long_asks_staff_to_ask_the_bank(
    seller: Seller, served_by: Serving, admin_client: Client, clock: Any
) -> None:
    served_by(sends=[REPLIES["under way"]])
    made = a_withdrawal(seller)
    send_due_withdrawals()
    clock.shift(16 * 60)
    assert of_withdrawal(admin_client, made) == (
        "bad",
        (
            "For 16 minutes the bank has not said whether it arrived. Ask the bank, then mark the order. "
            "See the order."
        ),
    )


def test_money_above_the_limit_waits_for_a_second_person(
    seller: Seller, admin_client: Client, settings: Any
) -> None:
    settings.APPROVAL_ITEM_LIMIT = 50_000
    seller.paid(200_000)
    refund = seller.refund(seller.paid(100_000, payer=NOBODY), destination=PAYEE)
    made = withdrawn(seller.shop)
    text = "1,000.00 THB waits for approval by a second person. Approve or reject it."
    assert of_refund(admin_client, refund) == ("wait", text)
    assert of_withdrawal(admin_client, made) == ("wait", text)
    viewer = Client()
    person = User.objects.create_user("malee", is_staff=True)
    person.user_permissions.add(Permission.objects.get(codename="view_withdrawal"))
    viewer.force_login(person)
    assert of_withdrawal(viewer, made) == ("wait", text.removesuffix(" Approve or reject it."))
    decide_approval(refund["refund_id"], "reject")
    decide_approval(made["withdrawal_id"], "reject")
    rejected = ("calm", f"1,000.00 THB did not arrive: the operator rejected it. {BALANCE}")
    assert (of_refund(admin_client, refund), of_withdrawal(admin_client, made)) == (rejected, rejected)


def test_refund_waits_for_the_account_of_the_customer(seller: Seller, admin_client: Client) -> None:
    made = seller.refund(seller.paid(100_000, payer=NOBODY))
    assert of_refund(admin_client, made) == (
        "wait",
        (
            "It waits for the customer's account: from the merchant's system, "
            "or from the customer on the claim page."
        ),
    )
    assert seller.act(made, "cancel").status_code == 200
    assert of_refund(admin_client, made) == (
        "calm",
        f"1,000.00 THB was not sent: canceled before the bank had it. {BALANCE}",
    )


def test_refund_that_came_back_waits_for_a_decision(
    seller: Seller, served_by: Serving, admin_client: Client
) -> None:
    served_by(sends=[REPLIES["arrived"]])
    made = a_refund(seller)
    send_due_refunds()
    report(made, "returned")
    text = "A refund of 1,000.00 THB came back from the bank."
    assert of_refund(admin_client, made) == ("bad", f"{text} Decide what happens to it.")
    decide("credit_returned_refund", made["refund_id"])
    assert of_refund(admin_client, made) == ("calm", f"{text} See what was decided.")


def test_contradiction_of_the_bank_comes_first(
    seller: Seller, served_by: Serving, admin_client: Client
) -> None:
    served_by(sends=[REPLIES["arrived"]])
    made = a_withdrawal(seller)
    send_due_withdrawals()
    report(made, "failed")
    text = (
        f"Order {made['withdrawal_id']} over 1,000.00 THB is succeeded here, and sandbox says failed. "
        "Decide what happens to it."
    )
    assert of_withdrawal(admin_client, made) == ("bad", text)


def test_returned_withdrawal_is_the_merchants_again(
    seller: Seller, served_by: Serving, admin_client: Client
) -> None:
    served_by(sends=[REPLIES["arrived"]])
    made = a_withdrawal(seller)
    send_due_withdrawals()
    report(made, "returned")
    text = f"1,000.00 THB did not arrive: the bank sent the money back. {BALANCE}"
    assert of_withdrawal(admin_client, made) == (
        "bad",
        f"{text} The merchant can withdraw it to another account.",
    )


def test_withdrawal_waits_while_the_merchant_owes(seller: Seller, admin_client: Client) -> None:
    credit = seller.sale(100_000)
    made = withdrawn(seller.shop)
    seller.reverse(credit)
    assert of_withdrawal(admin_client, made) == (
        "wait",
        "It waits because the merchant owes 1,000.00 THB. It is sent when this is paid. See the merchant.",
    )


def test_page_says_that_money_is_paused_to_those_who_may_see_why(
    seller: Seller, served_by: Serving, admin_client: Client
) -> None:
    served_by(sends=[REPLIES["not reached"]])
    tried, refund, withdrawal = a_withdrawal(seller), a_refund(seller), a_withdrawal(seller)
    send_due_withdrawals()
    safe_mode.pause(reason="A disk was put back", now=times.now())
    text = "It waits because no money is sent now: Staff paused all outgoing money."
    for made in (tried, refund, withdrawal):
        shown = of_refund if "refund_id" in made else of_withdrawal
        assert shown(admin_client, made) == ("wait", f"{text} What to do.")
    assert of_withdrawal(staff_client("malee", "view_withdrawal"), withdrawal) == ("wait", text)
    safe_mode.resume(reason="It was checked", now=times.now(), is_inquiry_needed=False)
    assert of_refund(admin_client, refund) == ("wait", "It is sent to the bank in a moment.")


def test_withdrawal_to_a_removed_account_says_that_it_waits_for_the_list(
    seller: Seller, served_by: Serving, admin_client: Client
) -> None:
    bank = served_by(sends=[REPLIES["arrived"]])
    account = add_payout_account(seller.shop)
    payout_accounts.restrict(seller.shop.merchant, True, now=times.now())
    made = a_withdrawal(seller)
    payout_accounts.remove(account.id, now=times.now())
    send_due_withdrawals()
    assert bank.sent == []
    assert of_withdrawal(admin_client, made) == (
        "wait",
        "It waits because its account is not on the merchant's list of payout accounts. See the merchant.",
    )


def test_order_to_a_bank_that_does_not_answer_is_not_sent_in_a_moment(
    seller: Seller, admin_client: Client
) -> None:
    made = a_withdrawal(seller)
    party = Counterparty.of("bank:sandbox", seller.shop.merchant.id)
    circuit_breakers.record_calls([(party, True)] * circuit_breakers.FAILURES_TO_OPEN, now=times.now())
    text = "The bank does not answer. The order is sent at 12:00:05. See the order."
    assert of_withdrawal(admin_client, made) == ("wait", text)


def test_refund_of_a_reversal_says_that_the_bank_took_the_money(seller: Seller, admin_client: Client) -> None:
    seller.reverse(seller.sale(100_000))
    (shown,) = seller.shop.get("/v1/refunds").json()["refunds"]
    assert of_refund(admin_client, shown) == (
        "good",
        "The bank itself took back 1,000.00 THB. This refund only shows it.",
    )


def test_page_links_to_the_order_and_shows_no_empty_values(seller: Seller, admin_client: Client) -> None:
    made = a_withdrawal(seller)
    path = f"/admin/withdrawals/withdrawal/{quote(made['withdrawal_id'])}/change/"
    page = admin_client.get(path).text
    link = re.search(r'href="(/admin/transfers/transfer/[^"]+)"><span class="state wait">Queued<', page)
    assert link
    assert admin_client.get(link[1]).status_code == 200
    assert "Failure code" not in page


def test_pages_of_orders_and_bank_transactions_begin_with_how_they_stand(
    admin_client: Client, seller: Seller, served_by: Serving
) -> None:
    """With a link to what they are for, or to the decision."""
    served_by(sends=[REPLIES["arrived"]])
    refund = a_refund(seller)
    order = f"/admin/transfers/transfer/{quote(refund['refund_id'])}/change/"
    assert sentence(admin_client, order)[0] == "wait"
    send_due_refunds()
    assert sentence(admin_client, order) == (
        "good",
        "1,000.00 THB arrived on 2026-11-21 12:00:00. Nothing is left to do. See what it is for.",
    )
    paid = seller.bank_transaction(refund["payment_id"])
    waits = seller.mismatch(149_900)
    for found, tone, link in ((paid, "good", "payments/payment"), (waits, "bad", "reconciliationexception")):
        path = f"/admin/reconciliation/banktransaction/{quote(found.pk)}/change/"
        assert sentence(admin_client, path)[0] == tone
        page = admin_client.get(path).text
        assert f"/{link}/" in page.partition('class="lead')[2].partition("</p>")[0]


def test_payment_that_the_bank_took_back_is_not_shown_as_refunded(
    admin_client: Client, seller: Seller
) -> None:
    credit = seller.sale(100_000)
    payment_id = str(credit.payment_id)
    seller.reverse(credit)
    path = f"/admin/payments/payment/{quote(payment_id)}/change/"
    assert sentence(admin_client, path) == ("bad", "Reversed by the bank: it took back 1,000.00 THB.")
    listed = admin_client.get("/admin/payments/payment/").text
    assert "Reversed by the bank" in listed
    assert '<span class="state info">Refunded</span>' not in listed
