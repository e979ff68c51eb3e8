"""How much a bank is asked: what it takes, and never at the cost of another bank."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from banks import Found, NotAnswered
from core import clock, thaiqr
from merchants.models import Merchant
from receipts import inquiries, turns
from receipts.models import Inquiry, Turn
from tests.conftest import BankCaller, Shop, open_shop
from tests.receipts.inquiries.cast import NOTHING, AskedBank, answers, database_now, found, one_round, sweep
from tests.stack import wait_until
from tests.threads import at_once

Answering = Callable[..., AskedBank]
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
    return before + wait <= Turn.objects.get().free_at <= database_now() + wait


def test_a_bank_is_asked_as_much_as_it_takes_in_a_second(shop: Shop, served_by: Answering) -> None:
    served_by(per_second=3)
    for _ in range(8):
        shop.qr_code()
    assert [one_round() for _ in range(4)] == [(3, 1.0), (3, 1.0), (2, pytest.approx(2 / 3)), (0, 0.0)]


def test_a_bank_that_takes_less_than_one_a_second_is_asked_that_often(
    shop: Shop, served_by: Answering
) -> None:
    served_by(per_second=0.1)
    for _ in range(2):
        shop.qr_code()
    assert one_round() == (1, 10.0)


def test_a_bank_is_left_alone_until_its_turn_comes_again(shop: Shop, served_by: Answering) -> None:
    served_by(per_second=0.001)
    for _ in range(2):
        shop.qr_code()
    assert (sweep(), sweep_on(), sweep(), sweep()) == (1, 0, 1, 0)


def test_a_single_call_has_the_turn_to_itself_and_gives_it_back(
    shop: Shop, served_by: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "PATIENCE_SECONDS", 0.2)
    served_by(per_second=0.001)
    shop.qr_code()
    with turns.of("sandbox"):
        assert sweep_on() == 0
        with pytest.raises(turns.Busy), turns.of("sandbox"):
            pass
    assert sweep_on() == 0, "nothing of its rate is left"
    assert sweep() == 1


def test_what_waits_longest_is_asked_first(shop: Shop, served_by: Answering) -> None:
    asked = served_by(per_second=1)
    shop.qr_code()
    sweep()
    shop.qr_code()
    Inquiry.objects.update(due_at=clock.now())
    assert sweep() == 1
    assert len(set(asked.asked)) == 1
    sweep()
    assert len(set(asked.asked)) == 2


def test_what_was_paid_in_the_meantime_takes_nobodys_place(
    shop: Shop, served_by: Answering, bank: BankCaller
) -> None:
    asked = served_by(per_second=1)
    codes = [shop.qr_code() for _ in range(4)]
    assert sum(sweep() for _ in codes) == 4
    for code in codes[:3]:
        bank.tell(code)
    assert (sweep(20), asked.asked[-1]) == (1, thaiqr.parse(codes[3]["qr_data"]).reference1)
    assert Inquiry.objects.filter(due_at=None).count() == 3


def test_a_silent_bank_rests_longer_and_longer_until_it_speaks(
    shop: Shop, rival: Shop, served_by: Answering
) -> None:
    served_by(*[NotAnswered()] * 10, NOTHING)
    shop.qr_code()
    rival.qr_code()
    for second, rest in ((6, 1), (60, 2), (120, 5), (200, 15), (400, 15)):
        assert is_free_after(rest, second)
    assert is_free_after(2 / 50, 900)
    assert Turn.objects.get().silences == 0


def test_one_silence_among_answers_is_no_silent_bank(shop: Shop, served_by: Answering) -> None:
    served_by(NotAnswered(), NOTHING)
    for _ in range(2):
        shop.qr_code()
    sweep()
    assert (sorted(answers()), Turn.objects.get().silences) == (["no_answer", "nothing"], 0)


@pytest.mark.django_db(transaction=True)
def test_a_bank_that_hangs_delays_no_other_bank(served_by: Answering) -> None:
    release = threading.Event()

    def hangs() -> Found:
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

    _, asked = at_once(lambda: [sweep_on()], others)
    assert asked == [1, 1, 1], "nobody else asked the slow one meanwhile"


def test_a_dead_bank_delays_no_other_bank(served_by: Answering, bank: BankCaller) -> None:
    served_by(NotAnswered(), name="dead")
    shop_at("dead").qr_code()
    shop = shop_at("alive")
    code = shop.qr_code()
    served_by(found(bank.notice(code)), name="alive")
    sweep()
    assert shop.payment(code["payment_id"])["status"] == "succeeded"
