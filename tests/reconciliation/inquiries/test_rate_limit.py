"""How much a bank is asked: what it takes, and never at the cost of another bank."""

import threading
from datetime import timedelta

import pytest

from banks import InquiryFailed, InquiryResult
from core import clock, thaiqr
from merchants.models import Merchant
from reconciliation.inquiries import rate_limit
from reconciliation.inquiries import services as inquiries
from reconciliation.models import BankRateLimit, Inquiry
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, open_shop
from tests.reconciliation.inquiries.builders import (
    NOTHING,
    Answering,
    database_now,
    found,
    outcomes,
    run_batch,
    sweep,
)
from tests.stack import wait_until

pytestmark = pytest.mark.django_db


def shop_at(bank: str) -> Shop:
    shop = open_shop(f"Shop at {bank}")
    Merchant.objects.filter(pk=shop.merchant.pk).update(mode="live", bank=bank)
    shop.merchant.refresh_from_db()
    return shop


def sweep_on() -> int:
    """The sweep six seconds from now, whatever turn it is."""
    at = clock.now() + timedelta(seconds=6)
    return inquiries.inquire_due(now=lambda: at)


def is_free_after(rest: float, second: float) -> bool:
    """Whether the sweep at that second leaves the bank alone for so many seconds, by the database's clock."""
    before, wait = database_now(), timedelta(seconds=rest)
    sweep(second)
    return before + wait <= BankRateLimit.objects.get().available_at <= database_now() + wait


def test_batches_keep_the_calls_per_second_of_the_bank(shop: Shop, served_by: Answering) -> None:
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


def test_longest_due_inquiry_comes_first(shop: Shop, served_by: Answering) -> None:
    asked = served_by(per_second=1)
    shop.qr_code()
    sweep()
    shop.qr_code()
    Inquiry.objects.update(due_at=clock.now())
    assert sweep() == 1
    assert len(set(asked.references)) == 1
    sweep()
    assert len(set(asked.references)) == 2


@pytest.mark.slow
def test_paid_inquiry_takes_no_place_in_a_batch(
    shop: Shop, served_by: Answering, bank: SandboxBankClient
) -> None:
    asked = served_by(per_second=1)
    codes = [shop.qr_code() for _ in range(4)]
    assert sum(sweep() for _ in codes) == 4
    for code in codes[:3]:
        bank.notify(code)
    assert (sweep(20), asked.references[-1]) == (1, thaiqr.parse(codes[3]["qr_data"]).reference1)
    assert Inquiry.objects.filter(due_at=None).count() == 3


@pytest.mark.slow
def test_bank_backoff_grows_until_an_answer(shop: Shop, other_shop: Shop, served_by: Answering) -> None:
    served_by(*[InquiryFailed()] * 10, NOTHING)
    shop.qr_code()
    other_shop.qr_code()
    for second, rest in ((6, 1), (60, 2), (120, 5), (200, 15), (400, 15)):
        assert is_free_after(rest, second)
    assert is_free_after(2 / 50, 900)
    assert BankRateLimit.objects.get().silent_batches == 0


def test_one_missing_answer_does_not_back_off_the_bank(shop: Shop, served_by: Answering) -> None:
    served_by(InquiryFailed(), NOTHING)
    for _ in range(2):
        shop.qr_code()
    sweep()
    assert (sorted(outcomes()), BankRateLimit.objects.get().silent_batches) == (["no_answer", "nothing"], 0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
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
