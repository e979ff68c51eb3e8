"""Staff set the nightly payout of a merchant on its page, and see there what became of each night."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client

from merchants.models import Merchant
from tests.approvals.builders import add_payout_account, staff
from tests.conftest import SandboxBankClient, Shop
from tests.security_lines import security_lines
from tests.staff_acts import acts_of_staff, run_act, send_act
from tests.withdrawals.builders import fund
from tests.withdrawals.payout_builders import bangkok, remove, run_at, schedule
from withdrawals.models import PayoutSchedule, Withdrawal

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
NOON, NIGHT = bangkok("12:00"), bangkok("21:00")
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def noon_in_bangkok() -> Iterator[None]:
    with time_machine.travel(NOON, tick=False):
        yield


@pytest.fixture
def shop(shop: Shop, bank: SandboxBankClient) -> Shop:
    """The shop, with 1,500.00 THB."""
    fund(shop, bank)
    return shop


@pytest.fixture
def anong(db: None) -> Client:
    return staff("anong", "view_merchant", "view_payoutnight", "change_payoutschedule", "view_withdrawal")


def form(account: Any, **changes: str) -> dict[str, str]:
    return {"account": str(account.pk), "days": "every_day", "time": "21:00", "float_amount": "500"} | changes


def do(client: Client, shop: Shop, slug: str, **values: str) -> str:
    return run_act(client, Merchant, shop.merchant.pk, slug, **values)


def shown(client: Client, shop: Shop) -> str:
    page = f"/admin/merchants/merchant/{shop.merchant.pk.replace('_', '_5F')}/change/"
    return client.get(page).content.decode()


def test_staff_set_and_stop_the_nightly_payout(
    shop: Shop,
    anong: Client,
    caplog: pytest.LogCaptureFixture,
    django_capture_on_commit_callbacks: Callable[..., Any],
) -> None:
    assert "It needs an account on the list" in shown(anong, shop)
    account = add_payout_account(shop)
    assert "Set the nightly payout: done." in do(anong, shop, "set-nightly-payout", **form(account))
    made = PayoutSchedule.objects.get()
    assert (made.float_amount, made.due_at, made.changed_by) == (50_000, NIGHT, "staff:anong")
    text = shown(anong, shop)
    assert "Every day, 21:00" in text and "500.00 THB" in text and "014 ...4567" in text
    run_at(NIGHT)
    text = shown(anong, shop)
    assert "1,000.00 THB" in text and Withdrawal.objects.get().pk.replace("_", "_5F") in text
    with django_capture_on_commit_callbacks(execute=True):
        assert "done." in do(anong, shop, "stop-nightly-payout")
    assert "Stop the nightly payout" not in shown(anong, shop)
    acts = acts_of_staff().filter(act="payout_schedule_changed")
    assert [each.merchant_id for each in acts] == [shop.merchant.id] * 2
    [line] = security_lines(caplog, "payout_schedule_changed")
    assert (line["subject"], line["changes"]) == (account.pk, ["-nightly_payout"])


@pytest.mark.parametrize(
    ("changes", "expected_text"),
    [
        ({"time": "23:31"}, "At most 23:30."),
        ({"time": "25:00"}, "valid time"),
        ({"float_amount": "-1"}, "Enter an amount in baht"),
        ({"float_amount": "99999999999999999999"}, "Enter an amount in baht"),
        ({"days": "sundays"}, "errorlist"),
        ({"reason": " "}, "required"),
    ],
)
def test_invalid_schedule_is_refused(
    shop: Shop, anong: Client, changes: dict[str, str], expected_text: str
) -> None:
    account = add_payout_account(shop)
    assert expected_text in do(anong, shop, "set-nightly-payout", **form(account, **changes))
    assert not PayoutSchedule.objects.exists()


def test_account_of_another_merchant_or_a_removed_one_is_refused(
    shop: Shop, other_shop: Shop, anong: Client
) -> None:
    mine = add_payout_account(shop)
    removed = add_payout_account(shop, bank_code="004")
    remove(removed, NOON)
    for account in (add_payout_account(other_shop), removed):
        assert "errorlist" in do(anong, shop, "set-nightly-payout", **form(account))
    assert not PayoutSchedule.objects.exists()
    assert "done." in do(anong, shop, "set-nightly-payout", **form(mine))


def test_staff_without_permission_cannot_set_the_nightly_payout(shop: Shop) -> None:
    account, intern = add_payout_account(shop), staff("intern", "view_merchant", "view_payoutnight")
    for slug in ("set-nightly-payout", "stop-nightly-payout"):
        assert send_act(intern, Merchant, shop.merchant.pk, slug, **form(account)).status_code == 403
    assert not PayoutSchedule.objects.exists()


def test_home_shows_skipped_nights_that_need_staff_until_the_schedule_is_changed(
    shop: Shop, anong: Client
) -> None:
    def home(now: datetime) -> bool:
        with time_machine.travel(now, tick=False):
            anong.force_login(User.objects.get(username="anong"))
            return "1 merchant skipped" in anong.get("/admin/?mode=test").content.decode()

    account = add_payout_account(shop)
    schedule(shop, now=NOON, account=account, float_amount=200_000)
    run_at(NIGHT)
    assert not home(NIGHT)
    remove(account, NIGHT)
    run_at(NIGHT + DAY)
    assert home(NIGHT + DAY)
    listed = anong.get("/admin/withdrawals/payoutnight/?mode=test").content.decode()
    assert "not on the list any more" in listed and "Nothing was above the float" in listed
    schedule(shop, now=NIGHT + DAY, account=add_payout_account(shop))
    assert not home(NIGHT + DAY)
