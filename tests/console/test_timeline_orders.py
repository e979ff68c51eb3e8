"""Orders to send money, in the timeline: who gave them, each telling and question, what the bank says."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.db import DatabaseError, connection, transaction
from django.test import Client

from banks import Word
from config.celery import app
from core import clock as our_clock
from receipts import acts, orders
from receipts.models import Notice, Receipt
from receipts.orders import OWNERS
from receipts.tasks import run_returns
from refunds.tasks import run_due
from tests.conftest import BankCaller, Shop
from tests.console.timeline_cast import CLERK, WHY, decided, entries, only, types
from tests.receipts.test_orders import told as word_of
from tests.refunds.cast import NOBODY, PAYEE, Counter, carry_out
from transfers import services as transfers
from transfers import settling
from transfers.models import Contradiction, Step

Serving = Callable[..., Any]
BY: dict[str, Any] = {"by": CLERK, "why": WHY}


@pytest.fixture
def twice(clock: Any, shop: Shop, bank: BankCaller) -> str:
    """A payment that was paid twice."""
    code = shop.qr_code()
    bank.tell(code)
    bank.tell(code)
    return str(code["payment_id"])


def run(task: Any, clock: Any, *, after: int = 60) -> str:
    """The task, so many seconds later; returns its id."""
    clock.shift(after)
    return str(app.tasks[task.name].apply(throw=True).id)


def tail(shop: Shop, payment_id: str, count: int) -> list[tuple[str, str, str]]:
    """The last entries: type, actor, request."""
    told = entries(shop, payment_id)[-count:]
    return [(each["type"], each["actor"], each["request_id"]) for each in told]


def test_each_telling_and_each_question_about_a_refund_says_which_task_it_was(
    shop: Shop, bank: BankCaller, clock: Any, served_by: Serving
) -> None:
    served_by(
        sends=[Word("not_sent"), Word("processing")],
        inquiries=[Word("unknown"), Word("succeeded", "b-1")],
    )
    counter = Counter(shop, bank)
    paid = counter.paid()
    counter.refund(paid, amount=50_000)
    tasks = [run(run_due, clock, after=3600) for _ in range(4)]
    assert tail(shop, paid, 6) == [
        ("refund.told", "clock", tasks[0]),
        ("refund.unreached", "clock", tasks[0]),
        ("refund.told", "clock", tasks[1]),
        ("refund.inquiry", "clock", tasks[2]),
        ("refund.inquiry", "clock", tasks[3]),
        ("refund.completed", "clock", tasks[3]),
    ]
    said = [each["details"]["said"] for each in entries(shop, paid) if each["type"] == "refund.inquiry"]
    assert said == ["unknown", "succeeded"]


def test_money_sent_back_names_the_tasks_that_told_and_asked(
    shop: Shop, twice: str, clock: Any, served_by: Serving
) -> None:
    served_by(sends=[Word("processing")], inquiries=[Word("failed", failure_code="account_closed")])
    acts.send_back(Receipt.objects.get(outcome="duplicate").pk, now=our_clock.now(), **BY)
    tasks = [run(run_returns, clock, after=3600) for _ in range(2)]
    assert tail(shop, twice, 3) == [
        ("return.told", "clock", tasks[0]),
        ("return.inquiry", "clock", tasks[1]),
        ("return.failed", "clock", tasks[1]),
    ]


def test_money_sent_back_at_the_counter_is_the_act_of_whoever_noted_it(
    admin_client: Client, shop: Shop, twice: str
) -> None:
    waiting = Receipt.objects.get(outcome="duplicate")
    acts.send_back_by_hand(waiting.pk, bank_reference="counter 7", now=our_clock.now(), **BY)
    assert only(shop, twice, "return.completed")["actor"] == "staff"
    page = admin_client.get(f"/admin/payments/payment/{quote(twice)}/change/").content.decode()
    assert page.count(f"staff:{CLERK}") == 2


def test_money_that_comes_back_does_so_by_the_banks_word(
    admin_client: Client, shop: Shop, bank: BankCaller, clock: Any, served_by: Serving
) -> None:
    served_by(sends=[Word("succeeded", "b-1")])
    counter = Counter(shop, bank)
    paid = counter.paid()
    refund_id = counter.refund(paid)["refund_id"]
    run(run_due, clock)
    clock.shift(60)
    answer = bank.post(word_of(refund_id, "returned"))
    request_id = answer.headers["X-Request-Id"]
    assert tail(shop, paid, 2) == [
        ("bank.notice", "bank:sandbox", request_id),
        ("refund.returned", "bank:sandbox", request_id),
    ]
    case = admin_client.get(f"/admin/receipts/waiting/{quote(refund_id)}/change/").content.decode()
    assert "&quot;status&quot;: &quot;returned&quot;" in case


def test_whoever_names_the_account_of_a_refund_is_named(shop: Shop, bank: BankCaller, clock: Any) -> None:
    counter = Counter(shop, bank)
    paid = counter.paid(payer=NOBODY)
    refund = counter.refund(paid)
    clock.shift(60)
    answer = counter.act(refund, "destination", PAYEE)
    key = f"key:{shop.merchant.keys.get().public_id}"
    assert tail(shop, paid, 1) == [("refund.addressed", key, answer.headers["X-Request-Id"])]


def test_the_page_of_an_order_tells_each_step(
    admin_client: Client, shop: Shop, bank: BankCaller, clock: Any, served_by: Serving
) -> None:
    served_by(sends=[Word("processing")], inquiries=[Word("unknown")])
    counter = Counter(shop, bank)
    refund_id = counter.refund(counter.paid())["refund_id"]
    tasks = [run(run_due, clock, after=3600) for _ in range(2)]
    page = admin_client.get(f"/admin/transfers/transfer/{refund_id}/change/").content.decode()
    assert f"2026-11-21 13:00:00 told  task:refunds.run_due {tasks[0]}" in page
    assert f"2026-11-21 14:00:00 inquiry unknown task:refunds.run_due {tasks[1]}" in page


@pytest.mark.parametrize(
    "attack",
    ["UPDATE transfers_step SET actor = ''", "DELETE FROM transfers_step", "TRUNCATE transfers_step"],
)
def test_the_steps_of_an_order_are_not_rewritten(shop: Shop, bank: BankCaller, attack: str) -> None:
    counter = Counter(shop, bank)
    counter.refund(counter.paid())
    assert Step.objects.count() == 1
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        with pytest.raises(DatabaseError, match="not rewritten"), transaction.atomic():
            cursor.execute(attack)


def test_what_the_bank_tells_of_a_refund_of_its_own_accord_is_quoted(
    admin_client: Client, shop: Shop, bank: BankCaller, served_by: Serving
) -> None:
    served_by(sends=[Word("processing")])
    counter = Counter(shop, bank)
    paid = counter.paid()
    refund_id = counter.refund(paid)["refund_id"]
    carry_out()
    for status in ("succeeded", "succeeded", "failed"):
        bank.post(word_of(refund_id, status))
    told = [each for each in entries(shop, paid) if {"verdict", "refund_id"} <= each["details"].keys()]
    assert [each["details"]["verdict"] for each in told] == ["new", "repeat", "conflict"]
    assert {(each["type"], each["actor"]) for each in told} == {("bank.notice", "bank:sandbox")}
    assert {each["details"]["refund_id"] for each in told} == {refund_id}
    assert told[0]["request_id"] == only(shop, paid, "refund.completed")["request_id"]
    first = Notice.objects.get(order_id=refund_id, verdict="new")
    order = admin_client.get(f"/admin/transfers/transfer/{refund_id}/change/").content.decode()
    assert f">{first}</a> (new)" in order and "(conflict)" in order
    notice = admin_client.get(f"/admin/receipts/notice/{first.pk}/change/").content.decode()
    assert f"/admin/transfers/transfer/{quote(refund_id)}/change/" in notice
    assert first.request_id in notice


def test_what_the_bank_tells_of_money_sent_back_stands_before_what_came_of_it(
    shop: Shop, bank: BankCaller, twice: str, clock: Any, served_by: Serving
) -> None:
    served_by(sends=[Word("processing")])
    waiting = Receipt.objects.get(outcome="duplicate")
    made = acts.send_back(waiting.pk, now=our_clock.now(), **BY)
    transfers.work("return", OWNERS["rtn"], now=our_clock.now)
    clock.shift(7)
    bank.post(word_of(made.id))
    *_, sent, notice, completed = entries(shop, twice)
    assert [each["type"] for each in (sent, notice, completed)] == [
        "return.told",
        "bank.notice",
        "return.completed",
    ]
    assert notice["details"]["return_id"] == made.id


def test_staff_who_dismiss_a_contradiction_about_a_refund_are_told(
    shop: Shop, bank: BankCaller, served_by: Serving
) -> None:
    served_by(sends=[Word("succeeded", "b-1")])
    counter = Counter(shop, bank)
    paid = counter.paid()
    refund_id = counter.refund(paid)["refund_id"]
    carry_out()
    bank.post(word_of(refund_id, "failed"))
    decided(Notice.objects.get(verdict="conflict"), "dismissed")
    assert types(shop, paid)[-2:] == ["bank.notice", "staff.dismissed"]


def test_contradiction_about_a_refund_and_its_end_stand_in_the_timeline(
    shop: Shop, bank: BankCaller, clock: Any, served_by: Serving
) -> None:
    served_by(sends=[Word("succeeded", "b-1")])
    counter = Counter(shop, bank)
    paid = counter.paid()
    refund_id = counter.refund(paid)["refund_id"]
    carry_out()
    clock.shift(1)
    settling.settle(refund_id, Word("failed", "b-1"), OWNERS["ref"], now=our_clock.now())
    found = Contradiction.objects.get()
    orders.book_as_returned(found.id, now=our_clock.now() + timedelta(seconds=1), **BY)
    told = only(shop, paid, "bank.contradiction")
    assert told["details"] == {
        "subject_id": refund_id,
        "amount": 150_000,
        "state": "succeeded",
        "said": "failed",
    }
    assert types(shop, paid)[-3:] == ["bank.contradiction", "staff.booked_returned", "refund.returned"]
    assert only(shop, paid, "staff.booked_returned")["actor"] == "staff"


@pytest.mark.parametrize("order_id", ["wd_000000000000000000000000000", "chrg_17"])
def test_a_notice_of_an_order_that_nobody_gave_names_none(
    shop: Shop, bank: BankCaller, order_id: str
) -> None:
    bank.post(word_of(order_id))
    notice = Notice.objects.get()
    assert (notice.verdict, notice.order_id) == ("conflict", None)
