"""One page shows all that waits for a person: why, how long, and which payment it may be meant for."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
import time_machine
from django.contrib.admin.utils import quote
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from banks import OrderNotice, Word
from console import metrics
from core import clock, lists
from receipts import acts, exceptions_admin
from receipts.models import Act, Deed, Notice, Receipt, Waiting
from receipts.orders import OWNERS
from receipts.sentences import span
from receipts.templatetags import exceptions
from tests.conftest import BankCaller, Shop
from tests.receipts.cast import reversal_of
from tests.receipts.staff import LIST, Odd, page_of, read, staff
from tests.refunds.cast import Counter, carry_out
from tests.transfers.cast import Bank
from transfers import services as transfers

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]


@pytest.fixture
def odd(shop: Shop, bank: BankCaller) -> Odd:
    return Odd(shop, bank)


@pytest.fixture
def onlooker(db: None) -> Client:
    return staff("onlooker", "view_receipt")


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(seconds=-5), "less than a second"),
        (timedelta(), "less than a second"),
        (timedelta(milliseconds=999), "less than a second"),
        (timedelta(seconds=1), "1 second"),
        (timedelta(seconds=59), "59 seconds"),
        (timedelta(minutes=4, seconds=59), "4 minutes"),
        (timedelta(hours=3, minutes=59), "3 hours"),
        (timedelta(days=1), "1 day"),
        (timedelta(days=400), "400 days"),
    ],
)
def test_a_span_in_words(length: timedelta, words: str) -> None:
    assert span(length) == words


def test_each_says_in_a_sentence_why_it_waits(odd: Odd, onlooker: Client) -> None:
    paid = odd.shop.qr_code()
    first = odd.told(paid)
    odd.told(paid)
    odd.unmatched()
    odd.mismatch(149_900)
    odd.mismatch(150_001)
    odd.late()
    odd.told(odd.shop.qr_code(), type="reversal")
    page = read(onlooker, LIST)
    for sentence in (
        f"This payment was paid already by {first.bank_transaction_id} on ",
        "Nobody has this reference.",
        "1.00 THB too little: 1,500.00 THB were asked for.",
        "0.01 THB too much: 1,500.00 THB were asked for.",
        "Paid 4 minutes after the code expired.",
        "The bank took money back, and there is not enough of it here to take.",
    ):
        assert sentence in page


def test_money_for_a_payment_that_failed_says_so(odd: Odd, onlooker: Client) -> None:
    code = odd.shop.qr_code()
    odd.told(code, type="decline")
    odd.told(code)
    assert "This payment had failed: declined_by_bank." in read(onlooker, LIST)


def test_money_taken_back_that_was_sent_back_by_hand_before_says_so(odd: Odd, onlooker: Client) -> None:
    credit = odd.duplicate()
    acts.send_back_by_hand(credit.id, bank_reference="V-77", by="malee", why="counter", now=clock.now())
    odd.bank.post(reversal_of(credit))
    reversal = Receipt.objects.get(kind="reversal")
    assert "was sent back by hand" in read(onlooker, LIST)
    assert "(V-77): if the bank means that, dismiss this" in read(onlooker, page_of(reversal.id))


def test_messages_wait_until_somebody_has_dismissed_them(odd: Odd, onlooker: Client) -> None:
    notice = odd.bank.notice(odd.shop.qr_code())
    odd.bank.post(notice)
    odd.bank.post(notice | {"amount": "1.00"})
    odd.bank.post(b"garbage")
    page = read(onlooker, LIST)
    assert f"The bank told its transaction {notice['transaction_id']} differently before." in page
    assert "A message of the bank that nobody understands." in page
    for waiting in Notice.objects.exclude(verdict="new"):
        Act.objects.create(subject_id=waiting.id, deed=Deed.DISMISSED, by="x", why="x", at=clock.now())
    assert "0 exceptions" in read(onlooker, LIST)


def test_refunds_whose_money_came_back_wait_too(
    shop: Shop, bank: BankCaller, onlooker: Client, served_by: Callable[..., Bank]
) -> None:
    served_by(sends=[Word("succeeded")])
    counter = Counter(shop, bank)
    refund = counter.refund(counter.paid())
    carry_out()
    back = OrderNotice(refund["refund_id"], "returned", failure_code="account_closed")
    transfers.hear(back, OWNERS["ref"], now=clock.now())
    assert "A refund of 1,500.00 THB came back from the bank: account_closed." in read(onlooker, LIST)
    assert "Came back" in read(onlooker, page_of(refund["refund_id"]))


def test_the_oldest_comes_first_and_is_red_after_a_day(odd: Odd, onlooker: Client, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as now:
        old = odd.unmatched()
        now.move_to(noon + timedelta(days=2))
        new = odd.mismatch()
        now.move_to(noon + timedelta(days=2, hours=3))
        onlooker = staff("malee", "view_receipt")
        page = read(onlooker, LIST)
    assert page.index(page_of(old.id)) < page.index(page_of(new.id))
    assert 'color: var(--error-fg)">2 days</span>' in page
    assert page.count("var(--error-fg)") == 1
    assert ">3 hours<" in page


def test_a_row_names_the_merchant_the_amount_and_the_nearest_payment(odd: Odd, onlooker: Client) -> None:
    code = odd.shop.qr_code(amount=1_234_500)
    odd.told(code, reference1="NOBODYKNOWSTHIS00000")
    page = read(onlooker, LIST)
    for shown in ("12,345.00 THB", "Somtam House", "sandbox", code["payment_id"], "same amount, code made"):
        assert shown in page


def listed(client: Client, **query: str) -> set[str]:
    page = read(client, LIST, **query)
    return {row.id for row in Waiting.objects.all() if page_of(row.id) in page}


def test_filters_narrow_the_list(odd: Odd, rival: Shop, bank: BankCaller, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as now:
        late, theirs = odd.late(), Odd(rival, bank).mismatch()
        now.move_to(noon + timedelta(hours=2))
        unmatched = odd.unmatched()
        client = staff("malee", "view_receipt")
        assert listed(client, why__exact="late") == {late.id}
        assert listed(client, merchant__id__exact=rival.merchant.id) == {theirs.id}
        assert listed(client, bank="scb") == set()
        assert listed(client, bank="sandbox") == listed(client) == {late.id, theirs.id, unmatched.id}
        assert listed(client, age="hour") == {late.id, theirs.id}
        assert listed(client, age="day") == set()


def test_the_search_knows_references_ids_and_amounts(odd: Odd, onlooker: Client) -> None:
    unmatched, mismatch = odd.unmatched(), odd.mismatch(123_456)
    for text in ("knowsthis", unmatched.bank_transaction_id, unmatched.id, "1,500.00", "1500", "1500 thb"):
        assert listed(onlooker, q=text) == {unmatched.id}, text
    for text in ("1234.56", "1,234.56 THB", mismatch.payment_id):
        assert listed(onlooker, q=text) == {mismatch.id}, text
    assert listed(onlooker, q="nothing like it") == set()


def test_the_search_knows_the_merchants_own_reference(odd: Odd, onlooker: Client) -> None:
    first, second = odd.shop.qr_code(reference="Order-17"), odd.shop.qr_code(reference="order-18")
    receipt, stranger = odd.told(first, satang=100), odd.unmatched()
    assert listed(onlooker, q="order-17") == {receipt.id}
    acts.attach(stranger.id, payment_id=second["payment_id"], by="malee", why="She called.", now=clock.now())
    assert listed(onlooker, q="order-18") == set()
    assert listed(onlooker, q="order") == {receipt.id}


def test_a_longer_list_costs_no_more_statements(odd: Odd, onlooker: Client) -> None:
    def statements() -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            read(onlooker, LIST)
        return len(asked)

    def one_of_each() -> None:
        odd.unmatched()
        odd.mismatch()
        odd.duplicate()
        odd.late()
        odd.bank.post(b"garbage")

    one_of_each()
    few = statements()
    for _ in range(6):
        one_of_each()
    assert statements() == few
    assert few <= 20


def test_a_list_of_many_has_pages(odd: Odd, onlooker: Client) -> None:
    for _ in range(60):
        odd.bank.post(b"garbage")
    first, second = read(onlooker, LIST), read(onlooker, LIST, p="2")
    assert first.count("nobody understands") == 50
    assert second.count("nobody understands") == 10


def test_what_fits_never_comes_onto_the_list(odd: Odd, onlooker: Client) -> None:
    odd.told(odd.shop.qr_code())
    odd.told(odd.shop.qr_code(), type="decline")
    assert not Waiting.objects.exists()
    assert "0 exceptions" in read(onlooker, LIST)


def test_a_page_tells_all_that_is_known(odd: Odd, onlooker: Client) -> None:
    receipt = odd.mismatch()
    page = read(onlooker, page_of(receipt.id))
    for shown in (
        "1.00 THB too little", "1,499.00 THB", "1,500.00 THB", receipt.bank_transaction_id,
        receipt.reference1, receipt.biller_id, "Somchai Jaidee", "014 Siam Commercial Bank", "xxxxxx7890",
        "callback", "same reference", receipt.payment_id, "Somtam House",
    ):  # fmt: skip
        assert shown in page, shown
    assert "1234567890" not in page


def test_a_page_names_payments_by_the_merchants_own_reference(odd: Odd, onlooker: Client) -> None:
    first, second = odd.shop.qr_code(reference="order-17"), odd.shop.qr_code(reference="order-18")
    page = read(onlooker, page_of(odd.told(first, satang=100).id))
    assert page.count("order-17") == 2  # what it named, and what is known of that
    assert "order-18" in read(onlooker, page_of(odd.told(second, reference1="NOBODYKNOWSTHIS00000").id))


def test_a_reversal_and_its_credit_lead_to_each_other(odd: Odd, onlooker: Client) -> None:
    credit = odd.told(odd.shop.qr_code())
    odd.bank.post(reversal_of(credit, 150_001))
    reversal = Receipt.objects.get(kind="reversal")
    assert f'{page_of(credit.id)}">1,500.00 THB, applied</a>' in read(onlooker, page_of(reversal.id))
    assert f'{page_of(reversal.id)}">1,500.01 THB, unmatched</a>' in read(onlooker, page_of(credit.id))


def test_times_are_those_of_bangkok(odd: Odd, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False):
        receipt = odd.mismatch()
        page = read(staff("malee", "view_receipt"), page_of(receipt.id))
    assert "2026-11-21 12:00:00, less than a second ago" in page


def test_the_raw_message_is_shown_without_account_numbers(odd: Odd, onlooker: Client) -> None:
    odd.bank.post(b'{"account": "1234567890", "hello": "world"}')
    page = read(onlooker, page_of(Notice.objects.get().id))
    assert "world" in page
    assert "1234567890" not in page


def test_what_the_bank_told_differently_stands_next_to_what_it_told_before(
    odd: Odd, onlooker: Client
) -> None:
    notice = odd.bank.notice(odd.shop.qr_code())
    odd.bank.post(notice)
    odd.bank.post(notice | {"amount": "1.23"})
    page = read(onlooker, page_of(Notice.objects.get(verdict="conflict").id))
    assert "1500.00" in page
    assert "1.23" in page


def test_hostile_words_of_payers_are_text(odd: Odd, onlooker: Client) -> None:
    hostile = "<script>alert(1)</script>"
    receipt = odd.unmatched(payer_name=hostile, reference1=hostile, transaction_id="<img/src=x>")
    odd.bank.post(b"<script>alert(2)</script>")
    pages = [read(onlooker, LIST), read(onlooker, LIST, q=hostile)]
    pages += [read(onlooker, page_of(row.pk)) for row in Waiting.objects.all()]
    for page in pages:
        assert "<script>alert" not in page
        assert "<img/src" not in page
    assert "&lt;script&gt;alert(1)" in read(onlooker, page_of(receipt.id))


@pytest.mark.parametrize("permission", ["view_receipt", "resolve_receipt"])
def test_who_sees_receipts_or_decides_about_them_sees_the_list(odd: Odd, permission: str) -> None:
    receipt = odd.mismatch()
    client = staff("malee", permission)
    assert page_of(receipt.id) in read(client, LIST)
    assert receipt.id in read(client, page_of(receipt.id))
    assert "exceptions" in read(client, "/admin/").lower()


def test_the_first_page_of_the_console_says_how_many_wait(
    odd: Odd, onlooker: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "for a person" not in read(onlooker, "/admin/")
    odd.mismatch()
    assert "1 exception waits for a person." in read(onlooker, "/admin/")
    odd.unmatched()
    assert f'<a href="{LIST}">2 exceptions wait for a person.</a>' in read(onlooker, "/admin/")
    monkeypatch.setattr(exceptions, "COUNTED", 2)
    assert "2 or more exceptions wait for a person." in read(onlooker, "/admin/")


def test_others_see_nothing(odd: Odd, client: Client) -> None:
    receipt = odd.mismatch()
    nobody = staff("nobody", "view_payment")
    assert "for a person" not in read(nobody, "/admin/")
    for path in (LIST, page_of(receipt.id)):
        assert nobody.get(path).status_code == 403
        assert client.get(path).status_code == 302


@pytest.mark.parametrize("unknown", ["rcp_" + "0" * 27, "x", "<script>"])
def test_an_unknown_exception_is_not_found(onlooker: Client, unknown: str) -> None:
    assert onlooker.get(page_of(unknown)).status_code == 404


def test_money_that_fitted_has_a_page_as_well(odd: Odd, onlooker: Client) -> None:
    receipt = odd.told(odd.shop.qr_code())
    assert "Its payment succeeded by it." in read(onlooker, page_of(receipt.id))
    record = read(onlooker, f"/admin/receipts/receipt/{quote(receipt.id)}/change/")
    assert page_of(receipt.id) in record


def test_what_waits_is_counted_up_to_a_limit(
    odd: Odd, onlooker: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        odd.unmatched()
        odd.bank.post(b"garbage")
    assert "or more" not in read(onlooker, LIST)
    monkeypatch.setattr(lists, "COUNTED", 2)
    monkeypatch.setattr(metrics, "COUNTED", 2)
    monkeypatch.setattr(exceptions_admin.ExceptionsAdmin, "list_per_page", 1)
    page = read(onlooker, LIST)
    assert "The first 2 rows." in page
    assert "2 exceptions" in page
    shown = onlooker.get("/metrics").content.decode()
    assert 'receipts_for_staff{money="sandbox"} 2.0' in shown
    assert 'notices_for_staff{money="sandbox"} 2.0' in shown
