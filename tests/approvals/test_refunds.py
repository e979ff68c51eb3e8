"""Refunds to another account than the payer's need approval above the limits."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from approvals.models import Approval
from banks import TransferResult
from core import clock
from refunds import services
from refunds.errors import RefundNotCancelable
from tests.approvals.builders import approval_of, click, decide_approval, listed, try_to_decide, waiting
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop
from tests.refunds.builders import PAYEE, RefundShop, send_due_refunds
from tests.timeline.builders import entries
from tests.transfers.builders import Bank
from transfers.models import Transfer
from webhooks.models import Event

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
LIMIT, DAY = 100_000, 250_000
PAYERS = {"bank_code": "SCB", "bank_account": "1234567890", "account_name": "Somchai Jaidee"}


@pytest.fixture(autouse=True)
def limits(settings: Settings) -> None:
    settings.APPROVAL_ITEM_LIMIT, settings.APPROVAL_DAILY_LIMIT = LIMIT, DAY


@pytest.fixture
def refund_shop(shop: Shop, bank: SandboxBankClient) -> RefundShop:
    return RefundShop(shop, bank)


def unknown_payer(refund_shop: RefundShop, **fields: Any) -> str:
    """Make a payment from an account at an unknown bank."""
    code = refund_shop.shop.qr_code(**fields)
    assert refund_shop.bank.notify(code, payer_bank_code="999").status_code == 200
    return str(code["payment_id"])


def refund_to_another_account(refund_shop: RefundShop, amount: int = 150_000) -> dict[str, Any]:
    """Make a refund to another account than the payer's."""
    return refund_shop.refund(refund_shop.paid(amount), destination=PAYEE)


def test_refund_above_the_limit_to_another_account_waits(
    refund_shop: RefundShop, served_by: Serving, malee: Client
) -> None:
    bank = served_by()
    refund = refund_to_another_account(refund_shop)
    send_due_refunds(3)
    assert refund_shop.read(refund) == refund
    assert (refund["status"], refund["pending_reason"]) == ("pending", "processing")
    assert refund["awaiting_approval"]
    assert (bank.sent, refund_shop.balance()) == ([], (0, 150_000))
    for part in ("1,500.00 THB", "...4567 at 004", "above the limit per item", refund["refund_id"][-8:]):
        assert part in listed(malee) + str(waiting()), part


def test_refund_within_the_limit_to_another_account_is_sent(
    refund_shop: RefundShop, served_by: Serving
) -> None:
    bank = served_by()
    refund = refund_to_another_account(refund_shop, LIMIT)
    send_due_refunds()
    assert (bank.sent, refund["awaiting_approval"]) == ([refund["refund_id"]], False)
    assert approval_of(refund["refund_id"]).status == "within_limits"


@pytest.mark.parametrize("destination", [None, PAYERS])
def test_refund_to_the_payers_own_account_needs_no_approval(
    refund_shop: RefundShop, served_by: Serving, destination: Any
) -> None:
    bank = served_by()
    given = {} if destination is None else {"destination": destination}
    refund = refund_shop.refund(refund_shop.paid(200_000), **given)
    send_due_refunds()
    assert (bank.sent, refund["awaiting_approval"]) == ([refund["refund_id"]], False)
    assert not Approval.objects.exists()


def test_refund_to_the_payers_number_at_another_bank_waits(refund_shop: RefundShop) -> None:
    destination = PAYERS | {"bank_code": "KBANK"}
    assert refund_shop.refund(refund_shop.paid(), destination=destination)["awaiting_approval"]


def test_refund_to_the_qr_codes_client_account_waits(refund_shop: RefundShop) -> None:
    client = {"client_bank_name": "kbank", "client_bank_account": "4051234567"}
    assert refund_shop.refund(unknown_payer(refund_shop, **client))["awaiting_approval"]


def test_refund_waits_for_approval_when_the_destination_is_given_later(
    refund_shop: RefundShop, served_by: Serving
) -> None:
    bank = served_by()
    refund = refund_shop.refund(unknown_payer(refund_shop))
    assert (refund["awaiting_approval"], waiting()) == (False, [])
    addressed = refund_shop.act(refund, "destination", PAYEE).json()
    assert (addressed["awaiting_approval"], addressed["pending_reason"]) == (True, "processing")
    send_due_refunds()
    assert bank.sent == []
    types = [entry["type"] for entry in timeline(refund_shop, refund)]
    assert types.count("refund.addressed") == 1
    decide_approval(refund["refund_id"], "approve")
    assert [entry["type"] for entry in timeline(refund_shop, refund)].count("refund.addressed") == 1


def test_later_payer_details_do_not_redirect_a_waiting_refund(refund_shop: RefundShop) -> None:
    payment_id = unknown_payer(refund_shop)
    refund = refund_shop.refund(payment_id, destination=PAYEE)
    assert refund["awaiting_approval"]
    assert Transfer.objects.get().account == PAYEE["bank_account"]
    assert error_code(refund_shop.act(refund, "destination", PAYERS)) == "refund_not_addressable"


def test_refunds_and_withdrawals_share_the_daily_limit(refund_shop: RefundShop) -> None:
    for _ in range(2):
        assert not refund_to_another_account(refund_shop, 90_000)["awaiting_approval"]
    refund_shop.paid()
    asked = {"amount": 90_000, "currency": "THB", "bank_code": "014"}
    asked |= {"bank_account": "4051234567", "account_name": "Somchai"}
    assert refund_shop.shop.post("/v1/withdrawals", asked).json()["awaiting_approval"]


def test_approved_refund_is_sent_once(refund_shop: RefundShop, served_by: Serving, malee: Client) -> None:
    bank = served_by(sends=[TransferResult("succeeded", "b-1")])
    refund = refund_to_another_account(refund_shop)
    assert "Approve: done." in click(malee, "approve", refund["refund_id"])
    assert "Nothing changed" in click(malee, "approve", refund["refund_id"])
    send_due_refunds(2)
    ended = refund_shop.read(refund)
    assert (ended["status"], ended["awaiting_approval"]) == ("completed", False)
    assert bank.sent == [refund["refund_id"]]


def test_rejected_refund_fails_and_releases_the_money(
    refund_shop: RefundShop, served_by: Serving, malee: Client
) -> None:
    bank = served_by()
    refund = refund_to_another_account(refund_shop)
    assert "Reject: done." in click(malee, "reject", refund["refund_id"])
    send_due_refunds(2)
    ended = refund_shop.read(refund)
    assert (ended["status"], ended["failure_code"]) == ("failed", "rejected_by_staff")
    assert (bank.sent, refund_shop.balance()) == ([], (150_000, 0))
    assert Event.objects.filter(subject_id=refund["refund_id"]).get().type == "refund.failed"
    assert refund_shop.history() == [("failed", -150_000)]
    assert refund_shop.refund(refund["payment_id"])["status"] == "pending"


def test_merchant_cancels_a_waiting_refund(refund_shop: RefundShop, malee: Client) -> None:
    refund = refund_to_another_account(refund_shop)
    canceled = refund_shop.act(refund, "cancel").json()
    assert (canceled["status"], canceled["awaiting_approval"]) == ("canceled", False)
    assert "Nothing changed" in click(malee, "approve", refund["refund_id"])
    assert (approval_of(refund["refund_id"]).status, refund_shop.balance()) == ("canceled", (150_000, 0))


def test_timeline_shows_requester_and_staff_decision(refund_shop: RefundShop) -> None:
    refund = refund_to_another_account(refund_shop)
    decide_approval(refund["refund_id"], "reject", note="a relative of the cashier")
    shown = {entry["type"]: entry for entry in timeline(refund_shop, refund)}
    requested, rejected = shown["approval.requested"], shown["approval.rejected"]
    assert requested["actor"].startswith("key:")
    details = {"refund_id": refund["refund_id"], "amount": 150_000, "reason": "item_limit"}
    assert requested["details"] == details
    assert (rejected["actor"], "cashier" in str(shown)) == ("staff", False)


@pytest.mark.django_db(transaction=True)
def test_concurrent_decisions_about_a_refund_have_one_outcome(
    refund_shop: RefundShop, served_by: Serving
) -> None:
    bank = served_by(sends=[TransferResult("succeeded", "b-1")])
    refund = refund_to_another_account(refund_shop)
    refund_id = refund["refund_id"]

    def cancel() -> bool:
        try:
            services.cancel(merchant=refund_shop.shop.merchant, refund_id=refund_id, now=clock.now())
        except RefundNotCancelable:
            return False
        return True

    approvals = [lambda: try_to_decide(refund_id, "approve", "staff:malee")] * 4
    rejections = [lambda: try_to_decide(refund_id, "reject", "staff:somsak")] * 4
    done = run_concurrently(*approvals, *rejections, *[cancel] * 2)
    assert (sum(done[:8]) <= 1, sum(done[8:]) <= 1) == (True, True)
    send_due_refunds(2)
    is_sent = refund_shop.read(refund)["status"] == "completed"
    assert (len(bank.sent), refund_shop.balance()) == ((1, (0, 0)) if is_sent else (0, (150_000, 0)))


def test_qr_codes_client_account_is_not_the_payers_if_the_bank_reports_another(
    refund_shop: RefundShop,
) -> None:
    payment_id = refund_shop.paid(client_bank_account="4051234567", client_bank_name="kbank")
    refund_shop.refund(payment_id, amount=75_000)
    assert not Approval.objects.exists()
    refund = refund_shop.refund(payment_id, amount=75_000, destination=PAYEE)
    assert approval_of(refund["refund_id"]).status == "within_limits"


def error_code(answer: Any) -> str:
    return str(answer.json()["error"]["code"])


def timeline(refund_shop: RefundShop, refund: dict[str, Any]) -> list[dict[str, Any]]:
    return entries(refund_shop.shop, refund["payment_id"])
