"""Above a sum that the operator sets, staff say yes or no before the money goes out."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django import Settings

from banks import Word
from tests.conftest import Shop
from tests.threads import at_once
from tests.transfers.cast import Bank
from tests.withdrawals.cast import PATH, balance, events_of, now_of, told, withdrawn, work
from transfers.models import Transfer
from withdrawals import services
from withdrawals.errors import AlreadyDecided
from withdrawals.models import Withdrawal

Serving = Callable[..., Bank]
pytestmark = pytest.mark.django_db
LISTED = "/admin/withdrawals/withdrawal/"


@pytest.fixture(autouse=True)
def limit(settings: Settings) -> None:
    settings.WITHDRAWAL_APPROVAL_ABOVE = 100_000


def staff(name: str, *permissions: str) -> Client:
    user = User.objects.create_user(name, is_staff=True)
    granted = ["view_withdrawal", *permissions]
    user.user_permissions.set(Permission.objects.filter(codename__in=granted))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def malee(db: None) -> Client:
    return staff("malee", "decide_withdrawal", "cancel_withdrawal")


def act(client: Client, action: str, *withdrawals: dict[str, Any]) -> str:
    """Choose them in the list and click; the page that follows."""
    chosen = [withdrawal["withdrawal_id"] for withdrawal in withdrawals]
    answer = client.post(LISTED, {"action": action, "_selected_action": chosen}, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def test_up_to_the_limit_nobody_is_asked(shop: Shop, served_by: Serving) -> None:
    served_by(sends=[Word("succeeded", "b-1")])
    made = withdrawn(shop, amount=100_000)
    work()
    assert now_of(shop, made)["status"] == "succeeded"


def test_a_limit_of_zero_asks_for_no_approval(shop: Shop, settings: Settings) -> None:
    settings.WITHDRAWAL_APPROVAL_ABOVE = 0
    withdrawn(shop, amount=150_000)
    assert Transfer.objects.count() == 1


def test_above_it_the_money_is_reserved_and_waits(shop: Shop, served_by: Serving, malee: Client) -> None:
    bank = served_by()
    made = withdrawn(shop, amount=100_001)
    work(3)
    assert now_of(shop, made) == made
    assert made["status"] == "pending"
    assert (bank.sent, balance(shop)) == ([], (49_999, 100_001))
    assert events_of(made) == ["withdrawal.pending"]
    assert made["withdrawal_id"] in malee.get(f"{LISTED}?approval=waits").content.decode()
    assert "withdrawals_for_staff 1.0" in shop.http.get("/metrics").content.decode()


def test_approved_it_goes_out_and_it_is_known_who_said_so(
    shop: Shop, served_by: Serving, malee: Client
) -> None:
    served_by(sends=[Word("succeeded", "b-1")])
    made = withdrawn(shop, amount=150_000)
    assert "approved." in act(malee, "approve", made)
    work()
    assert now_of(shop, made)["status"] == "succeeded"
    row = Withdrawal.objects.get()
    assert (row.decided_by, row.decided_at is not None) == ("malee", True)
    entry = LogEntry.objects.get()
    assert (entry.user.username, entry.object_id, entry.change_message) == ("malee", row.id, "approved")
    assert made["withdrawal_id"] not in malee.get(f"{LISTED}?approval=waits").content.decode()


def test_two_clicks_send_it_once(shop: Shop, served_by: Serving, malee: Client) -> None:
    bank = served_by(sends=[Word("succeeded", "b-1")])
    made = withdrawn(shop, amount=150_000)
    act(malee, "approve", made)
    assert "nothing changed" in act(staff("somsak", "decide_withdrawal"), "approve", made)
    work()
    assert "nothing changed" in act(malee, "approve", made)
    assert "nothing changed" in act(malee, "reject", made)
    work(2)
    assert bank.sent == [made["withdrawal_id"]]
    assert (Withdrawal.objects.get().decided_by, LogEntry.objects.count()) == ("malee", 1)


def test_rejected_it_fails_and_the_money_is_the_merchants_again(
    shop: Shop, served_by: Serving, malee: Client
) -> None:
    bank = served_by()
    made = withdrawn(shop, amount=150_000)
    assert "rejected." in act(malee, "reject", made)
    assert "nothing changed" in act(malee, "approve", made)
    work(2)
    ended = now_of(shop, made)
    assert (ended["status"], ended["failure_code"]) == ("failed", "rejected_by_staff")
    assert (bank.sent, balance(shop)) == ([], (150_000, 0))
    assert events_of(made) == ["withdrawal.pending", "withdrawal.failed"]
    assert told(made)[-1]["data"] == ended
    assert Withdrawal.objects.get().decided_by == "malee"


def test_the_merchant_can_cancel_while_it_waits(shop: Shop, malee: Client) -> None:
    made = withdrawn(shop, amount=150_000)
    assert shop.post(f"{PATH}/{made['withdrawal_id']}/cancel").json()["status"] == "canceled"
    assert "nothing changed" in act(malee, "approve", made)
    assert (balance(shop), Transfer.objects.count()) == ((150_000, 0), 0)


def test_the_merchant_can_cancel_what_is_approved_and_not_yet_sent(shop: Shop, malee: Client) -> None:
    made = withdrawn(shop, amount=150_000)
    act(malee, "approve", made)
    assert shop.post(f"{PATH}/{made['withdrawal_id']}/cancel").json()["status"] == "canceled"
    assert (balance(shop), Transfer.objects.get().state) == ((150_000, 0), "canceled")


def test_staff_cancel_for_the_merchant(shop: Shop, malee: Client) -> None:
    made = withdrawn(shop, amount=100)
    assert "canceled." in act(malee, "cancel", made)
    assert "nothing changed" in act(malee, "cancel", made)
    assert (now_of(shop, made)["status"], LogEntry.objects.count()) == ("canceled", 1)


@pytest.mark.parametrize("action", ["approve", "reject", "cancel"])
def test_who_may_only_look_changes_nothing(shop: Shop, action: str) -> None:
    made = withdrawn(shop, amount=150_000)
    act(staff("intern"), action, made)
    assert now_of(shop, made) == made
    assert (Withdrawal.objects.get().decided_by, LogEntry.objects.count()) == ("", 0)


def test_what_needs_no_approval_is_not_decided(shop: Shop, malee: Client) -> None:
    made = withdrawn(shop, amount=100)
    assert "nothing changed" in act(malee, "reject", made)
    assert now_of(shop, made) == made


def test_a_new_limit_leaves_what_was_asked_for_before(shop: Shop, settings: Settings) -> None:
    made = withdrawn(shop, amount=150_000)
    settings.WITHDRAWAL_APPROVAL_ABOVE = 0
    assert Withdrawal.objects.get().waits_for_staff
    services.approve(withdrawal_id=made["withdrawal_id"], by="malee", now=Withdrawal.objects.get().created_at)
    assert not Withdrawal.objects.get().waits_for_staff


@pytest.mark.django_db(transaction=True)
def test_of_many_decisions_at_once_one_counts(shop: Shop, served_by: Serving) -> None:
    bank = served_by(sends=[Word("succeeded", "b-1")])
    made = withdrawn(shop, amount=150_000)
    at = Withdrawal.objects.get().created_at

    def decide(how: Callable[..., None], by: str) -> bool:
        try:
            how(withdrawal_id=made["withdrawal_id"], by=by, now=at)
        except AlreadyDecided:
            return False
        return True

    approvals = [lambda: decide(services.approve, "malee")] * 6
    assert sum(at_once(*approvals, *[lambda: decide(services.reject, "somsak")] * 6)) == 1
    work(2)
    ended = now_of(shop, made)
    was_approved = Withdrawal.objects.get().decided_by == "malee"
    assert (ended["status"], len(bank.sent)) == (("succeeded", 1) if was_approved else ("failed", 0))
    assert balance(shop) == ((0, 0) if was_approved else (150_000, 0))
