"""Nightly payouts: what is above the float goes out once a night, or the night says why not."""

from collections.abc import Callable
from datetime import time, timedelta
from typing import Any

import pytest
import time_machine
from pytest_django import Settings

from approvals import payout_accounts
from approvals.models import Approval
from approvals.services import NotDecidable
from banks import TransferResult
from merchants.models import Merchant
from tests.approvals.builders import MALEE, add_payout_account, decide_approval, page, staff, waiting
from tests.conftest import SandboxBankClient, Shop
from tests.context import acting_as
from tests.payments.test_fees import CHARGED, NET, by_card
from tests.reconciliation.builders import Seller
from tests.transfers.builders import Bank
from tests.withdrawals.builders import PATH, balance, events_of, fund, send_due_withdrawals
from tests.withdrawals.payout_builders import SATURDAY, bangkok, nights, paid, remove, run_at, schedule
from transfers import safe_mode
from transfers.models import SafeMode
from withdrawals import payouts, services
from withdrawals.models import PayoutDays, Withdrawal

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
NOON = bangkok("12:00")
NIGHT = bangkok("21:00")
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def noon_in_bangkok() -> Any:
    with time_machine.travel(NOON, tick=False):
        yield


def test_balance_above_the_float_is_paid_out_at_its_time(shop: Shop, served_by: Serving) -> None:
    bank = served_by(sends=[TransferResult("succeeded", "b-1")])
    schedule(shop, now=NOON, float_amount=30_000)
    run_at(NIGHT - timedelta(milliseconds=1))
    assert nights() == []
    run_at(NIGHT)
    assert nights() == [("2026-11-21", 120_000, "")]
    assert balance(shop) == (30_000, 120_000)
    [made] = shop.get(PATH).json()["withdrawals"]
    assert (made["payout_night"], made["reference"]) == ("2026-11-21", "NIGHTLY-2026-11-21")
    assert (made["bank_code"], made["bank_account"], made["status"]) == ("014", "4567", "pending")
    with time_machine.travel(NIGHT, tick=False):
        send_due_withdrawals()
    assert bank.sent == [made["withdrawal_id"]]
    expected = ["withdrawal.pending", "withdrawal.processed", "withdrawal.succeeded"]
    assert events_of(made) == expected


def test_second_run_of_a_night_pays_nothing(shop: Shop, bank: SandboxBankClient) -> None:
    schedule(shop, now=NOON)
    run_at(NIGHT)
    fund(shop, bank)
    run_at(NIGHT + timedelta(minutes=1))
    assert paid() == [("2026-11-21", 150_000)]
    run_at(NIGHT + DAY)
    assert paid() == [("2026-11-21", 150_000), ("2026-11-22", 150_000)]


def test_night_is_made_up_for_on_its_day(shop: Shop) -> None:
    schedule(shop, now=NOON, time=time(8), days=PayoutDays.EVERY_DAY)
    run_at(bangkok("23:59", SATURDAY + DAY))
    assert nights() == [("2026-11-22", 150_000, "")]


def test_night_without_a_worker_is_skipped_when_its_day_is_over(shop: Shop) -> None:
    schedule(shop, now=NOON)
    run_at(bangkok("00:00", SATURDAY + 2 * DAY))
    assert nights() == [("2026-11-21", 0, "missed"), ("2026-11-22", 0, "missed")]
    run_at(bangkok("21:00", SATURDAY + 2 * DAY))
    assert paid() == [("2026-11-23", 150_000)]


def test_weekdays_are_monday_to_friday_in_bangkok(shop: Shop, bank: SandboxBankClient) -> None:
    # 06:00 in Bangkok is the day before in UTC.
    made = schedule(shop, now=NOON, days=PayoutDays.WEEKDAYS, time=time(6))
    assert made.due_at == bangkok("06:00", SATURDAY + 2 * DAY)
    for day in range(1, 9):
        fund(shop, bank, 10_000)
        run_at(bangkok("06:00", SATURDAY + day * DAY))
    assert [night for night, _ in paid()] == [f"2026-11-{day}" for day in (23, 24, 25, 26, 27)]


def test_money_that_an_acquirer_has_not_settled_stays(shop: Shop, settings: Settings) -> None:
    settings.SANDBOX_ACQUIRER_URL = "http://127.0.0.1:1"
    by_card(shop, CHARGED)
    schedule(shop, now=NOON)
    run_at(NIGHT)
    assert paid() == [("2026-11-21", 150_000)]
    assert shop.get("/v1/balance").json()["pending_settlement"] == NET


def test_balance_above_the_largest_withdrawal_leaves_in_several(
    shop: Shop, bank: SandboxBankClient, settings: Settings
) -> None:
    settings.APPROVAL_ITEM_LIMIT = 0
    settings.APPROVAL_DAILY_LIMIT = 0
    for satang in (200_000_000, 200_000_000, 50):
        fund(shop, bank, max(satang, 100))
    schedule(shop, now=NOON, float_amount=150_050)
    run_at(NIGHT)
    # 50 satang are less than the smallest withdrawal.
    assert paid() == [("2026-11-21", 200_000_000), ("2026-11-21", 200_000_000)]
    assert nights() == [("2026-11-21", 400_000_000, "")]
    assert balance(shop) == (150_100, 400_000_000)
    assert len(shop.get(f"{PATH}?reference=NIGHTLY-2026-11-21").json()["withdrawals"]) == 2


def test_payout_above_the_limits_waits_for_another_person_than_the_one_who_set_it(
    shop: Shop, settings: Settings
) -> None:
    settings.APPROVAL_ITEM_LIMIT = 100_000
    schedule(shop, now=NOON)
    run_at(NIGHT)
    [made] = shop.get(PATH).json()["withdrawals"]
    assert (made["awaiting_approval"], waiting()) == (True, [made["withdrawal_id"]])
    with time_machine.travel(NIGHT, tick=False):
        shown = page(staff("malee", "decide_approval", "view_withdrawal"), made["withdrawal_id"])
        assert "anong" in shown and "NIGHTLY-2026-11-21" in shown
        with pytest.raises(NotDecidable, match="Another person"):
            decide_approval(made["withdrawal_id"], "approve", actor="staff:anong")
        decide_approval(made["withdrawal_id"], "reject")
    assert balance(shop) == (150_000, 0)
    run_at(NIGHT + timedelta(hours=1))
    assert len(paid()) == 1


def test_nightly_payouts_count_against_the_limit_of_24_hours(
    shop: Shop, bank: SandboxBankClient, settings: Settings
) -> None:
    settings.APPROVAL_ITEM_LIMIT, settings.APPROVAL_DAILY_LIMIT = 0, 200_000
    schedule(shop, now=NOON)
    run_at(NIGHT)
    fund(shop, bank)
    schedule(shop, now=NIGHT, time=time(20))
    run_at(bangkok("20:00", SATURDAY + DAY))
    assert list(Approval.objects.order_by("requested_at").values_list("reason", flat=True)) == [
        "",
        "daily_limit",
    ]


# --- skipped ------------------------------------------------------------------------------------------


def test_night_without_money_above_the_float_is_skipped(shop: Shop) -> None:
    schedule(shop, now=NOON, float_amount=150_000)
    run_at(NIGHT)
    schedule(shop, now=NIGHT, float_amount=149_901)
    run_at(NIGHT + DAY)
    schedule(shop, now=NIGHT + DAY, float_amount=149_900)
    run_at(NIGHT + 2 * DAY)
    assert nights() == [
        ("2026-11-21", 0, "nothing_available"),
        ("2026-11-22", 0, "too_small"),
        ("2026-11-23", 100, ""),
    ]


@pytest.mark.parametrize("is_on", [True, False])
def test_night_is_skipped_while_its_account_may_not_be_used(shop: Shop, is_on: bool) -> None:
    """Whether or not other withdrawals may go to any account."""
    payout_accounts.restrict(shop.merchant, is_on, now=NOON)
    account = add_payout_account(shop, age=timedelta(0))
    schedule(shop, now=NOON, account=account)
    run_at(NIGHT)
    run_at(NIGHT + DAY)
    remove(account, NIGHT + DAY)
    run_at(NIGHT + 2 * DAY)
    assert nights() == [
        ("2026-11-21", 0, "payout_account_too_new"),
        ("2026-11-22", 150_000, ""),
        ("2026-11-23", 0, "payout_account_not_allowed"),
    ]


def test_night_is_skipped_while_the_merchant_has_a_debt(shop: Shop, bank: SandboxBankClient) -> None:
    seller = Seller(shop, bank)
    credit = seller.sale(100_000)
    schedule(shop, now=NOON)
    run_at(NIGHT)
    seller.reverse(credit)
    run_at(NIGHT + DAY)
    assert nights()[1:] == [("2026-11-22", 0, "negative_balance")]


def test_night_is_skipped_while_outgoing_money_is_paused(shop: Shop) -> None:
    """Also if the pause has ended since its time: a restored database does not know whether it was paid."""
    schedule(shop, now=NOON)
    with acting_as(MALEE):
        safe_mode.pause(reason="a restore", now=NOON)
        run_at(NIGHT)
        safe_mode.resume(reason="compared", now=NIGHT + DAY + timedelta(minutes=2))
    run_at(NIGHT + DAY + timedelta(minutes=3))
    run_at(NIGHT + 2 * DAY)
    expected = [("2026-11-21", 0, "safe_mode"), ("2026-11-22", 0, "safe_mode"), ("2026-11-23", 150_000, "")]
    assert nights() == expected
    assert SafeMode.objects.count() == 1


def test_failed_payout_does_not_stop_those_of_others(
    shop: Shop, other_shop: Shop, bank: SandboxBankClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The task fails, which its alert shows, and the night is due again."""
    fund(other_shop, bank)
    schedule(shop, now=NOON, time=time(20))
    schedule(other_shop, now=NOON)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(services, "create", _failing_for(shop, services.create))
        run_at(NIGHT)
    assert f"the nightly payout of {shop.merchant.pk} failed" in caplog.text
    assert [(each.merchant_id, each.amount) for each in Withdrawal.objects.all()] == [
        (other_shop.merchant.pk, 150_000)
    ]
    run_at(NIGHT + timedelta(minutes=1))
    assert len(paid()) == 2


def _failing_for(shop: Shop, create: Any) -> Any:
    def made(*, merchant: Merchant, **fields: Any) -> Any:
        if merchant.pk == shop.merchant.pk:
            raise RuntimeError("unexpected")
        return create(merchant=merchant, **fields)

    return made


# --- a changed schedule -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "terms",
    [{"time": time(21, 1)}, {"time": time(23, 30)}, {"days": PayoutDays.WEEKDAYS}, {"time": time(0)}],
)
def test_changed_schedule_does_not_pay_a_night_again(
    shop: Shop, bank: SandboxBankClient, terms: dict[str, Any]
) -> None:
    friday = SATURDAY + 6 * DAY
    schedule(shop, now=bangkok("12:00", friday))
    run_at(bangkok("21:00", friday))
    fund(shop, bank)
    schedule(shop, now=bangkok("21:00", friday), **terms)
    for minute in range(0, 180, 10):
        run_at(bangkok("21:00", friday) + timedelta(minutes=minute))
    assert [each for each in paid() if each[0] == "2026-11-27"] == [("2026-11-27", 150_000)]


def test_schedule_that_is_set_after_its_time_begins_the_next_day(shop: Shop) -> None:
    assert schedule(shop, now=NIGHT).due_at == NIGHT + DAY
    assert schedule(shop, now=NIGHT, time=time(21, 1)).due_at == NIGHT + timedelta(minutes=1)


def test_night_that_nothing_made_before_a_change_is_shown_as_missed(shop: Shop) -> None:
    schedule(shop, now=NOON)
    schedule(shop, now=NIGHT + timedelta(minutes=5), time=time(22))
    run_at(bangkok("22:00"))
    assert nights() == [("2026-11-21", 0, "missed")]
    run_at(bangkok("22:00", SATURDAY + DAY))
    assert paid() == [("2026-11-22", 150_000)]


def test_stopped_schedule_pays_nothing(shop: Shop) -> None:
    schedule(shop, now=NOON)
    with acting_as(MALEE):
        payouts.change(shop.merchant, None, now=NOON)
    run_at(NIGHT)
    assert (nights(), paid()) == ([], [])
