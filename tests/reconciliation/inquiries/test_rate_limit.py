"""Rate limits of banks, their call budget, and back-off of banks and merchants."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.db.models.functions import Now

import banks
from banks import InquiryFailed, InquiryRequest, InquiryResult
from banks.sandbox import SandboxBank
from banks.scb import Scb
from core import clock
from core.clock import BANGKOK
from core.thai import thaiqr
from merchants.models import Merchant
from reconciliation.inquiries import rate_limit, services as inquiries
from reconciliation.inquiries.rate_limit import MAX_PARALLEL_CALLS, CallBudget
from reconciliation.models import Backoff, BankRateLimit, Inquiry
from tests.banks import fake_scb
from tests.banks.fake_scb import FakeScb, success
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, open_shop
from tests.reconciliation.inquiries.builders import (
    NOTHING,
    Answering,
    create_codes,
    database_now,
    found,
    outcomes,
    run_batch,
    sweep,
)
from tests.stack import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


def shop_at(bank: str) -> Shop:
    shop = open_shop(f"Shop at {bank}")
    Merchant.objects.filter(pk=shop.merchant.pk).update(mode="live", bank=bank)
    shop.merchant.refresh_from_db()
    return shop


def sweep_on() -> int:
    """Make the inquiries that are due in 6 s, without making the banks available."""
    at = clock.now() + timedelta(seconds=6)
    return inquiries.inquire_due(now=lambda: at)


def is_free_after(rest: float, second: float) -> bool:
    """Return whether a run at that second pauses the bank for `rest` seconds, by the database's clock."""
    before, wait = database_now(), timedelta(seconds=rest)
    sweep(second)
    return before + wait <= BankRateLimit.objects.get().available_at <= database_now() + wait


def test_inquiry_batches_keep_the_calls_per_second_of_the_bank(shop: Shop, served_by: Answering) -> None:
    served_by(per_second=3)
    for _ in range(8):
        shop.qr_code()
    assert [run_batch() for _ in range(4)] == [(3, 1.0), (3, 1.0), (2, pytest.approx(2 / 3)), (0, 0.0)]


def test_slow_rate_limit_below_one_call_per_second_is_kept(shop: Shop, served_by: Answering) -> None:
    served_by(per_second=0.1)
    for _ in range(2):
        shop.qr_code()
    assert run_batch() == (1, 10.0)


def test_bank_is_not_called_before_available_at(shop: Shop, served_by: Answering) -> None:
    served_by(per_second=0.001)
    for _ in range(2):
        shop.qr_code()
    assert (sweep(), sweep_on(), sweep(), sweep()) == (1, 0, 1, 0)


def test_exclusive_call_holds_and_releases_the_rate_limit(
    shop: Shop, served_by: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rate_limit, "PATIENCE_SECONDS", 0.2)
    served_by(per_second=0.001)
    shop.qr_code()
    with rate_limit.exclusive_call("sandbox"):
        assert sweep_on() == 0
        with pytest.raises(rate_limit.BankBusy), rate_limit.exclusive_call("sandbox"):
            pass
    assert sweep_on() == 0, "nothing of its rate is left"
    assert sweep() == 1


def test_slips_leave_three_quarters_of_a_bank_to_inquiries(
    shop: Shop, served_by: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody shows one slip after the other: each question takes part of the time of slips only."""
    monkeypatch.setattr(rate_limit, "PATIENCE_SECONDS", 0)
    served_by(per_second=0.001)
    create_codes(shop, 3)
    with rate_limit.exclusive_call("sandbox", is_about_slip=True):
        pass
    limit = BankRateLimit.objects.get()
    assert limit.slips_at - limit.available_at >= timedelta(seconds=3000)
    for _ in range(3):
        BankRateLimit.objects.update(available_at=Now())
        with pytest.raises(rate_limit.BankBusy), rate_limit.exclusive_call("sandbox", is_about_slip=True):
            pass
        assert sweep() == 1
    BankRateLimit.objects.update(available_at=Now(), slips_at=Now())
    with rate_limit.exclusive_call("sandbox", is_about_slip=True):
        pass


def test_longest_due_inquiry_comes_first(shop: Shop, served_by: Answering) -> None:
    fake_bank = served_by(per_second=1)
    shop.qr_code()
    sweep()
    shop.qr_code()
    Inquiry.objects.update(due_at=clock.now())
    assert sweep() == 1
    assert len(set(fake_bank.references)) == 1
    sweep()
    assert len(set(fake_bank.references)) == 2


def test_inquiry_of_a_paid_payment_takes_no_place_in_the_batch(
    shop: Shop, served_by: Answering, bank: SandboxBankClient
) -> None:
    fake_bank = served_by(per_second=1)
    codes = [shop.qr_code() for _ in range(4)]
    assert sum(sweep() for _ in codes) == 4
    for code in codes[:3]:
        bank.notify(code)
    assert (sweep(20), fake_bank.references[-1]) == (1, thaiqr.parse(codes[3]["qr_data"]).reference1)
    assert Inquiry.objects.filter(due_at=None).count() == 3


def test_bank_backoff_grows_until_an_answer(shop: Shop, other_shop: Shop, served_by: Answering) -> None:
    served_by(*[InquiryFailed()] * 10, NOTHING)
    shop.qr_code()
    other_shop.qr_code()
    for second, rest in ((6, 1), (60, 2), (120, 5), (200, 15), (400, 15)):
        assert is_free_after(rest, second)
    assert is_free_after(2 / 50, 900)
    assert BankRateLimit.objects.get().silent_batches == 0


def test_single_missing_answer_does_not_back_off_the_bank(shop: Shop, served_by: Answering) -> None:
    served_by(InquiryFailed(), NOTHING)
    for _ in range(2):
        shop.qr_code()
    sweep()
    assert (sorted(outcomes()), BankRateLimit.objects.get().silent_batches) == (["no_answer", "nothing"], 0)


@pytest.mark.django_db(transaction=True)
def test_hanging_bank_does_not_delay_other_banks(served_by: Answering) -> None:
    release = threading.Event()

    def hangs() -> InquiryResult:
        release.wait(60)
        return NOTHING

    slow = served_by(hangs, name="slow", per_second=1)
    fast = served_by(name="fast")
    for _ in range(2):
        shop_at("slow").qr_code()

    def others() -> list[int]:
        wait_until(lambda: len(slow.questions) == 1, 60)
        shop_at("fast").qr_code()
        asked = [sweep_on(), len(fast.questions), len(slow.questions)]
        release.set()
        return asked

    _, asked = run_concurrently(lambda: [sweep_on()], others)
    assert asked == [1, 1, 1], "nobody else asked the slow one meanwhile"


def test_unreachable_bank_does_not_delay_other_banks(served_by: Answering, bank: SandboxBankClient) -> None:
    served_by(InquiryFailed(), name="dead")
    shop_at("dead").qr_code()
    shop = shop_at("alive")
    code = shop.qr_code()
    served_by(found(bank.notification(code)), name="alive")
    sweep()
    assert shop.payment(code["payment_id"])["status"] == "succeeded"


def test_inquiry_batch_alternates_between_merchants(
    shop: Shop, other_shop: Shop, served_by: Answering
) -> None:
    fake_bank = served_by(per_second=2)
    many, one = create_codes(shop, 5), create_codes(other_shop)
    sweep()
    assert [len(set(fake_bank.references) & set(theirs)) for theirs in (many, one)] == [1, 1]


def test_single_merchant_may_use_the_whole_inquiry_batch(
    shop: Shop, other_shop: Shop, served_by: Answering
) -> None:
    served_by(per_second=4)
    create_codes(shop, 5)
    create_codes(other_shop)
    assert (sweep(), sweep()) == (4, 2)


def test_merchant_without_answers_backs_off_without_the_bank(
    shop: Shop, other_shop: Shop, served_by: Answering
) -> None:
    fake_bank = served_by()
    fake_bank.silent_about.update(create_codes(shop, 3))
    assert (sweep(6), BankRateLimit.objects.get().silent_batches) == (3, 0)
    create_codes(shop)
    (alive,) = create_codes(other_shop)
    assert (sweep(6.5), fake_bank.references[-1]) == (1, alive)
    assert Inquiry.objects.filter(payment__merchant=shop.merchant).count() == 4
    assert sweep(12) == 4, "the rest is over"


def test_merchant_backoff_grows_until_an_answer(shop: Shop, served_by: Answering) -> None:
    fake_bank = served_by()
    fake_bank.silent_about.update(create_codes(shop))
    for seconds, silent_batches in ((6, 1), (60, 2), (120, 3), (200, 4), (400, 5)):
        assert sweep(seconds) == 1
        assert Backoff.objects.get().silent_batches == silent_batches
    fake_bank.silent_about.clear()
    assert (sweep(1000), Backoff.objects.count()) == (1, 0)


def test_single_answer_prevents_merchant_backoff(shop: Shop, served_by: Answering) -> None:
    fake_bank = served_by()
    fake_bank.silent_about.update(create_codes(shop, 2))
    create_codes(shop)
    assert (sweep(), Backoff.objects.count()) == (3, 0)


def test_two_silent_merchants_back_off_the_bank(shop: Shop, other_shop: Shop, served_by: Answering) -> None:
    fake_bank = served_by()
    fake_bank.silent_about.update(create_codes(shop) + create_codes(other_shop))
    assert (sweep(), BankRateLimit.objects.get().silent_batches) == (2, 1)


def test_postponed_inquiry_is_rescheduled_like_no_answer(shop: Shop, served_by: Answering) -> None:
    fake_bank = served_by(per_second=1)
    fake_bank.silent_about.update(create_codes(shop, 2, minutes=1))
    in_ten_minutes = Inquiry.objects.filter(due_at__gt=clock.now() + timedelta(seconds=2500))
    assert (sweep(2000), in_ten_minutes.count()) == (1, 1)
    assert (sweep(2000.5), in_ten_minutes.count()) == (0, 2)


MIDNIGHT = datetime(2026, 11, 22, tzinfo=BANGKOK)
NOON = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)


def asking(*days: int) -> list[InquiryRequest]:
    """Questions at noon about codes of these numbers of days."""
    return [InquiryRequest("b", "r", 1, NOON - timedelta(days=day - 1), NOON) for day in days]


class Slow(SandboxBank):
    calls_per_second = 0.1


class Fast(SandboxBank):
    calls_per_second = 1000.0


@pytest.mark.parametrize(
    ("bank", "days", "fitting"),
    [
        (Scb, [1] * 9, [1] * 5),
        (Scb, [2, 2, 2], [2, 2]),
        (Scb, [1, 4, 1], [1, 4]),
        (Scb, [2, 4, 1], [2]),
        (Scb, [4], [4]),
        (Scb, [6, 1], [5]),
        (Scb, [], []),
        (Slow, [1, 1], [1]),
        (Fast, [1] * 40, [1] * MAX_PARALLEL_CALLS),
    ],
)
def test_inquiry_batch_fits_the_call_budget_with_at_least_one_inquiry(
    bank: type[banks.Bank], days: list[int], fitting: list[int]
) -> None:
    budget = CallBudget(bank)
    assert budget.fit(asking(*days), budget.max_calls) == fitting


@pytest.mark.parametrize(("left", "fitting"), [(0, []), (1, [1]), (2, [1]), (3, [1, 2]), (5, [1, 2, 1])])
def test_remaining_inquiry_call_budget_is_used(left: int, fitting: list[int]) -> None:
    assert CallBudget(Scb).fit(asking(1, 2, 1), left) == fitting


@pytest.mark.parametrize(
    ("bank", "days", "seconds"),
    [(Scb, [1] * 5, 1.0), (Scb, [2, 2], 0.8), (Scb, [6], 1.2), (Scb, [], 0.0), (Slow, [1], 10.0)],
)
def test_pause_after_a_batch_counts_all_inquiry_calls(
    bank: type[banks.Bank], days: list[int], seconds: float
) -> None:
    assert CallBudget(bank).pause(asking(*days)) == timedelta(seconds=seconds)


def test_inquiry_of_a_short_time_range_needs_one_call() -> None:
    assert Scb.calls_needed(asking(400)[0]) == 1


@pytest.fixture
def scb() -> Iterator[FakeScb]:
    with FakeScb.running() as bank:
        yield bank


@pytest.fixture
def scb_shop(db: None, scb: FakeScb) -> Shop:
    return fake_scb.shop_at(scb)


def test_inquiry_batch_makes_at_most_one_second_of_calls(scb_shop: Shop, scb: FakeScb) -> None:
    """Three codes from before midnight need two calls each, and two from after it one."""
    with time_machine.travel(MIDNIGHT - timedelta(minutes=20)):
        before = create_codes(scb_shop, 3)
    with time_machine.travel(MIDNIGHT + timedelta(minutes=30)):
        after = create_codes(scb_shop, 2)
        for reference in before + after:
            for day in ("2026-11-21", "2026-11-22"):
                scb.on_inquiry(day, success([]), reference=str(reference))
        rounds = [(*run_batch(), len(scb.inquiries)) for _ in range(3)]
    assert rounds == [(2, 0.8, 4), (3, 0.8, 8), (0, 0.0, 8)]
