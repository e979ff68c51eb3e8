"""A withdrawal above the limits waits until a second person approves it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, transaction
from django.test import Client
from pytest_django import Settings

from approvals.models import Approval
from approvals.services import NotDecidable
from banks import TransferResult
from core import clock, request_context
from merchants.services import issue_key
from tests.approvals.builders import (
    approval_of,
    click,
    decide_approval,
    listed,
    page,
    staff,
    try_to_decide,
    waiting,
)
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, new_client
from tests.reconciliation.builders import Seller
from tests.security_lines import security_lines
from tests.staff_acts import acts_of_staff, run_act
from tests.transfers.builders import Bank
from tests.withdrawals.builders import (
    PATH,
    balance,
    event_data_of,
    events_of,
    fetch_withdrawal,
    fund,
    send_due_withdrawals,
    withdrawal_request,
    withdrawn,
)
from transfers.models import Transfer
from withdrawals import services
from withdrawals.errors import WithdrawalNotCancelable
from withdrawals.models import Withdrawal

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
LIMIT, DAY = 100_000, 250_000


@pytest.fixture(autouse=True)
def limits(settings: Settings) -> None:
    settings.APPROVAL_ITEM_LIMIT, settings.APPROVAL_DAILY_LIMIT = LIMIT, DAY


@pytest.fixture
def shop(shop: Shop, bank: SandboxBankClient) -> Shop:
    """The shop, with 15,000.00 THB."""
    fund(shop, bank, 1_500_000)
    return shop


def test_withdrawal_of_exactly_the_item_limit_needs_no_approval(shop: Shop, served_by: Serving) -> None:
    served_by(sends=[TransferResult("succeeded", "b-1")])
    made = withdrawn(shop, amount=LIMIT)
    send_due_withdrawals()
    assert fetch_withdrawal(shop, made)["status"] == "succeeded"
    assert approval_of(made["withdrawal_id"]).status == "within_limits"


def test_approval_limit_of_zero_is_disabled(shop: Shop, settings: Settings) -> None:
    settings.APPROVAL_ITEM_LIMIT = settings.APPROVAL_DAILY_LIMIT = 0
    made = withdrawn(shop, amount=1_500_000)
    assert (made["awaiting_approval"], Transfer.objects.get().state) == (False, "queued")


def test_withdrawal_above_the_item_limit_waits_with_reserved_money(
    shop: Shop, served_by: Serving, malee: Client
) -> None:
    bank = served_by()
    made = withdrawn(shop, amount=LIMIT + 1)
    send_due_withdrawals(3)
    assert fetch_withdrawal(shop, made) == made
    assert (made["status"], made["awaiting_approval"]) == ("pending", True)
    assert (bank.sent, balance(shop)) == ([], (1_399_999, 100_001))
    assert events_of(made) == ["withdrawal.pending"]
    metrics = shop.http.get("/metrics").content.decode()
    assert 'thaiqr_approvals_waiting{kind="withdrawal"} 1.0' in metrics
    text = listed(malee)
    for part in ("1,000.01 THB", "Somtam House", "...4567 at 014", "above the limit per item", "key:"):
        assert part in text, part


def test_withdrawals_below_the_item_limit_wait_above_the_daily_limit(shop: Shop) -> None:
    made = [withdrawn(shop, amount=90_000) for _ in range(4)]
    assert [each["awaiting_approval"] for each in made] == [False, False, True, True]
    assert approval_of(made[2]["withdrawal_id"]).reason == "daily_limit"


def test_daily_approval_limit_counts_the_last_24_hours_of_one_merchant(
    shop: Shop, bank: SandboxBankClient
) -> None:
    now = clock.now()
    with time_machine.travel(now - timedelta(hours=24), tick=False):
        withdrawn(shop, amount=90_000)
    with time_machine.travel(now - timedelta(hours=23, minutes=59), tick=False):
        withdrawn(shop, amount=90_000)
    with time_machine.travel(now, tick=False):
        made = [withdrawn(shop, amount=90_000) for _ in range(2)]
    assert [each["awaiting_approval"] for each in made] == [False, True]


def test_daily_approval_limit_is_separate_for_each_merchant(
    shop: Shop, other_shop: Shop, bank: SandboxBankClient
) -> None:
    for _ in range(3):
        withdrawn(shop, amount=90_000)
    fund(other_shop, bank)
    assert not withdrawn(other_shop, amount=90_000)["awaiting_approval"]


def test_rejected_and_canceled_requests_do_not_count_against_the_daily_limit(shop: Shop) -> None:
    for how in ("reject", "cancel"):
        made = withdrawn(shop, amount=DAY)
        if how == "reject":
            decide_approval(made["withdrawal_id"], how)
        else:
            assert shop.post(f"{PATH}/{made['withdrawal_id']}/cancel").status_code == 200
    assert not withdrawn(shop, amount=LIMIT)["awaiting_approval"]


def test_waiting_request_counts_against_the_daily_limit(shop: Shop) -> None:
    withdrawn(shop, amount=DAY)
    assert withdrawn(shop, amount=100)["awaiting_approval"]


def test_approved_withdrawal_is_sent_and_stores_the_approver(
    shop: Shop, served_by: Serving, malee: Client
) -> None:
    served_by(sends=[TransferResult("succeeded", "b-1")])
    made = withdrawn(shop, amount=150_000)
    text = click(malee, "approve", made["withdrawal_id"])
    assert f">withdrawal {made['withdrawal_id']}</a>" in text and "Approve: done." in text
    assert not fetch_withdrawal(shop, made)["awaiting_approval"]
    send_due_withdrawals()
    assert fetch_withdrawal(shop, made)["status"] == "succeeded"
    approval = approval_of(made["withdrawal_id"])
    assert (approval.status, approval.decided_by) == ("approved", "staff:malee")
    assert approval.requested_by.startswith("key:")
    entry = acts_of_staff().get()
    assert (entry.actor, entry.object_id) == ("staff:malee", approval.id)
    assert made["withdrawal_id"] not in listed(malee)
    assert "<td>malee</td>" in page(malee, made["withdrawal_id"])


def test_second_approval_of_a_withdrawal_sends_nothing(shop: Shop, served_by: Serving, malee: Client) -> None:
    bank = served_by(sends=[TransferResult("succeeded", "b-1")])
    made = withdrawn(shop, amount=150_000)["withdrawal_id"]
    click(malee, "approve", made)
    assert "Nothing changed" in click(staff("somsak", "decide_approval"), "approve", made)
    send_due_withdrawals()
    assert "Nothing changed" in click(malee, "approve", made)
    assert "Nothing changed" in click(malee, "reject", made)
    send_due_withdrawals(2)
    assert bank.sent == [made]
    assert (approval_of(made).decided_by, acts_of_staff().count()) == ("staff:malee", 1)


def test_rejected_withdrawal_fails_and_releases_the_money(
    shop: Shop, served_by: Serving, malee: Client
) -> None:
    bank = served_by()
    made = withdrawn(shop, amount=150_000)
    assert "Reject: done." in click(malee, "reject", made["withdrawal_id"])
    assert "Nothing changed" in click(malee, "approve", made["withdrawal_id"])
    send_due_withdrawals(2)
    ended = fetch_withdrawal(shop, made)
    assert (ended["status"], ended["failure_code"]) == ("failed", "rejected_by_staff")
    assert (ended["awaiting_approval"], Transfer.objects.get().state) == (False, "canceled")
    assert (bank.sent, balance(shop)) == ([], (1_500_000, 0))
    assert events_of(made) == ["withdrawal.pending", "withdrawal.failed"]
    assert event_data_of(made)[-1]["data"] == ended


def test_merchant_cancels_a_waiting_withdrawal(shop: Shop, malee: Client) -> None:
    made = withdrawn(shop, amount=150_000)["withdrawal_id"]
    assert shop.post(f"{PATH}/{made}/cancel").json()["status"] == "canceled"
    assert "Nothing changed" in click(malee, "approve", made)
    assert (balance(shop), Transfer.objects.get().state) == ((1_500_000, 0), "canceled")
    assert approval_of(made).status == "canceled"


def test_merchant_cancels_an_approved_withdrawal_that_is_not_sent(shop: Shop, malee: Client) -> None:
    made = withdrawn(shop, amount=150_000)["withdrawal_id"]
    click(malee, "approve", made)
    assert shop.post(f"{PATH}/{made}/cancel").json()["status"] == "canceled"
    assert (balance(shop), Transfer.objects.get().state) == ((1_500_000, 0), "canceled")
    assert approval_of(made).status == "approved"


def test_staff_without_permission_cannot_approve_or_reject_withdrawals(shop: Shop) -> None:
    made = withdrawn(shop, amount=150_000)["withdrawal_id"]
    intern = staff("intern", "change_approval", "cancel_withdrawal")
    assert "/do/approve/" not in page(intern, made)
    for how in ("approve", "reject"):
        click(intern, how, made)
    assert (waiting(), acts_of_staff().count()) == ([made], 0)


def test_requester_cannot_decide_an_own_withdrawal_request(shop: Shop, malee: Client) -> None:
    made = withdrawn(shop, amount=150_000)["withdrawal_id"]
    asked_by = approval_of(made).requested_by
    for how in ("approve", "reject"):
        with pytest.raises(NotDecidable, match="You requested this"):
            decide_approval(made, how, actor=asked_by)
    assert waiting() == [made]


def test_issuer_of_an_api_key_cannot_decide_withdrawals_requested_with_the_key(
    shop: Shop, malee: Client
) -> None:
    request_context.begin(actor="staff:malee")
    _, secret = issue_key(merchant=shop.merchant, now=clock.now())
    made = withdrawn(Shop(shop.merchant, secret, shop.http), amount=150_000)["withdrawal_id"]
    for how in ("approve", "reject"):
        assert "An API key that you issued requested this" in click(malee, how, made)
    with pytest.raises(DatabaseError, match="the person who issued the key"), transaction.atomic():
        Approval.objects.filter(subject_id=made).update(
            status="approved", decided_by="staff:malee", decided_at=clock.now()
        )
    assert waiting() == [made]
    decide_approval(made, "approve", actor="staff:somsri")
    assert waiting() == []


def test_withdrawal_within_the_limits_cannot_be_decided(shop: Shop, malee: Client) -> None:
    made = withdrawn(shop, amount=100)
    assert "Nothing changed" in click(malee, "reject", made["withdrawal_id"])
    assert fetch_withdrawal(shop, made) == made


def test_changed_approval_limits_do_not_affect_earlier_withdrawals(shop: Shop, settings: Settings) -> None:
    made = withdrawn(shop, amount=150_000)["withdrawal_id"]
    settings.APPROVAL_ITEM_LIMIT = 0
    assert waiting() == [made]
    decide_approval(made, "approve")
    assert waiting() == []


def test_approval_page_shows_balance_and_debt(shop: Shop, bank: SandboxBankClient, malee: Client) -> None:
    seller = Seller(shop, bank)
    credit = seller.sale(50_000)
    made = withdrawn(shop, amount=1_500_000)["withdrawal_id"]
    assert "500.00 THB" in page(malee, made)
    withdrawn(shop, amount=50_000)
    seller.reverse(credit)
    for text in (page(malee, made), listed(malee)):
        assert '<strong class="state bad">500.00 THB' in text


def test_staff_cancel_a_withdrawal_for_the_merchant(shop: Shop) -> None:
    somsri = User.objects.create_user("somsri", is_staff=True)
    granted = ["view_withdrawal", "cancel_withdrawal"]
    somsri.user_permissions.set(Permission.objects.filter(codename__in=granted))
    client = Client()
    client.force_login(somsri)
    made = withdrawn(shop, amount=150_000)
    for words in ("done.", "only a pending withdrawal can be canceled"):
        assert words in run_act(client, Withdrawal, made["withdrawal_id"], "cancel")
    assert (fetch_withdrawal(shop, made)["status"], acts_of_staff().count()) == ("canceled", 1)


@pytest.mark.django_db(transaction=True)
def test_concurrent_decisions_about_a_withdrawal_have_one_outcome(shop: Shop, served_by: Serving) -> None:
    bank = served_by(sends=[TransferResult("succeeded", "b-1")])
    made = withdrawn(shop, amount=150_000)["withdrawal_id"]

    def cancel() -> bool:
        try:
            services.cancel(withdrawal_id=made, now=clock.now())
        except WithdrawalNotCancelable:
            return False
        return True

    approvals = [lambda: try_to_decide(made, "approve", "staff:malee")] * 4
    rejections = [lambda: try_to_decide(made, "reject", "staff:somsak")] * 4
    outcomes_of_calls = run_concurrently(*approvals, *rejections, *[cancel] * 2)
    send_due_withdrawals(2)
    ended = Withdrawal.objects.get()
    # An approved withdrawal may be canceled until it is submitted.
    assert sum(outcomes_of_calls[:8]) <= 1
    assert sum(outcomes_of_calls[8:]) <= 1
    outcomes = {
        "succeeded": (1, (1_350_000, 0)),
        "failed": (0, (1_500_000, 0)),
        "canceled": (0, (1_500_000, 0)),
    }
    assert (len(bank.sent), balance(shop)) == outcomes[ended.status]


@pytest.mark.django_db(transaction=True)
def test_concurrent_withdrawals_do_not_exceed_the_daily_limit(shop: Shop) -> None:
    def ask() -> bool:
        client = Shop(shop.merchant, shop.secret_key, new_client())
        answer = client.post(PATH, withdrawal_request(amount=60_000))
        assert answer.status_code == 200, answer.content
        return bool(answer.json()["awaiting_approval"])

    asked = run_concurrently(*[ask] * 20)
    assert asked.count(False) == DAY // 60_000
    free = Approval.objects.filter(status="within_limits").values_list("amount", flat=True)
    assert sum(free) == 240_000
    assert Transfer.objects.filter(state="queued").count() == 4
    assert Transfer.objects.filter(state="held").count() == 16


@pytest.mark.parametrize(
    ("button", "event"), [("approve", "outgoing_money_approved"), ("reject", "outgoing_money_rejected")]
)
def test_approval_decision_is_in_the_security_log(
    shop: Shop,
    malee: Client,
    caplog: pytest.LogCaptureFixture,
    django_capture_on_commit_callbacks: Any,
    button: str,
    event: str,
) -> None:
    withdrawal = withdrawn(shop, amount=150_000)
    with django_capture_on_commit_callbacks(execute=True):
        click(malee, button, withdrawal["withdrawal_id"])
    [line] = security_lines(caplog, event)
    assert (line["actor"], line["subject"], line["merchant"]) == (
        "staff:malee",
        withdrawal["withdrawal_id"],
        shop.merchant.pk,
    )
    assert line["request_id"].startswith("req_")
