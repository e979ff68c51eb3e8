"""Staff decide about money that waits: one click to ask, one to confirm, kept with who and why."""

import re
from collections.abc import Callable
from functools import partial
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from banks import OrderNotice, Word
from core import clock
from payments.models import Payment
from receipts import ways
from receipts.models import Act, Notice, Receipt, Return
from receipts.orders import OWNERS
from tests.conftest import BankCaller, Shop, open_shop
from tests.receipts.staff import LIST, Odd, page_of, read, staff
from tests.refunds.cast import Counter, carry_out
from tests.threads import at_once
from tests.transfers.cast import Bank
from transfers import services as transfers
from transfers.models import Transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
WHY = "The customer showed <b>the receipt</b> of the shop."
ACCOUNT = {"bank_code": "KBANK", "bank_account": "4051234567", "account_name": "สมหญิง ใจดี"}
SLUGS = ["accept", "attach", "send-back", "send-to", "by-hand", "dismiss", "keep"]


@pytest.fixture
def odd(shop: Shop, bank: BankCaller) -> Odd:
    return Odd(shop, bank)


@pytest.fixture
def malee(db: None) -> Client:
    return staff("malee", "view_receipt", "resolve_receipt")


def act_page(subject_id: str, slug: str) -> str:
    return f"{LIST}{subject_id}/act/{slug}/"


def ask(client: Client, subject_id: str, slug: str, **query: str) -> str:
    """The page that follows the first click."""
    return unescape(client.get(act_page(subject_id, slug), query, follow=True).content.decode())


def confirm(client: Client, subject_id: str, slug: str, **fields: str) -> str:
    """The page that follows the second click."""
    posted = {"why": WHY, "sure": "yes"} | fields
    answer = client.post(act_page(subject_id, slug), posted, follow=True)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def buttons(client: Client, subject_id: str) -> list[str]:
    found = re.findall(r'href="[^"]*/act/([a-z-]+)/"', read(client, page_of(subject_id)))
    return [slug for slug in SLUGS if slug in found]


def status(payment_id: str) -> tuple[str, int]:
    payment = Payment.objects.get(pk=payment_id)
    return payment.status, payment.received


def metrics(client: Client) -> str:
    return str(client.get("/metrics").content.decode())


def test_only_what_is_possible_has_a_button(odd: Odd, malee: Client) -> None:
    odd.bank.post(b"garbage")
    assert buttons(malee, odd.mismatch().id) == ["accept", "send-back", "send-to", "by-hand"]
    assert buttons(malee, odd.late().id) == ["accept", "send-back", "send-to", "by-hand"]
    assert buttons(malee, odd.unmatched().id) == ["send-back", "send-to", "by-hand"]
    assert buttons(malee, odd.duplicate().id) == ["send-back", "send-to", "by-hand"]
    assert buttons(malee, Notice.objects.get(verdict="unreadable").id) == ["dismiss"]
    assert buttons(malee, odd.told(odd.shop.qr_code(), type="reversal").id) == ["dismiss"]
    assert buttons(malee, odd.told(odd.shop.qr_code()).id) == []


def test_another_amount_is_accepted(odd: Odd, malee: Client) -> None:
    receipt = odd.mismatch(149_900)
    said = ask(malee, receipt.id, "accept")
    assert f"Payment {receipt.payment_id} of Somtam House asked for 1,500.00 THB. It succeeds" in said
    assert "with the 1,499.00 THB that came in" in said
    assert f"Accepted: 1,499.00 THB at sandbox ({receipt.id})." in confirm(malee, receipt.id, "accept")
    assert status(receipt.payment_id) == ("succeeded", 149_900)
    done = Act.objects.get()
    assert (done.subject_id, done.deed, done.by, done.why) == (receipt.id, "accepted", "malee", WHY)
    entry = LogEntry.objects.get()
    assert (entry.user.username, entry.object_id) == ("malee", receipt.id)


def test_late_money_is_accepted(odd: Odd, malee: Client) -> None:
    receipt = odd.late()
    assert "succeeds with this 1,500.00 THB" in ask(malee, receipt.id, "accept")
    confirm(malee, receipt.id, "accept")
    assert status(receipt.payment_id) == ("succeeded", 150_000)


def test_money_is_attached_to_a_near_payment_by_one_click(odd: Odd, malee: Client) -> None:
    code = odd.shop.qr_code()
    receipt = odd.told(code, reference1="NOBODYKNOWSTHIS00000")
    offered = re.findall(r'/act/attach/\?payment=(pay_\w+)"', read(malee, page_of(receipt.id)))
    assert offered == [code["payment_id"]]
    said = ask(malee, receipt.id, "attach", payment=offered[0])
    assert f"Payment {offered[0]} of Somtam House succeeds with this 1,500.00 THB" in said
    assert "Attached" in confirm(malee, receipt.id, "attach", payment=offered[0]).replace(
        "attached", "Attached"
    )
    assert status(code["payment_id"]) == ("succeeded", 150_000)
    assert "It was attached to payment" in read(malee, page_of(receipt.id))


@pytest.mark.parametrize("typed", ["pay_" + "0" * 27, "pay_1", "<script>", "rcp_" + "0" * 27])
def test_money_is_not_attached_to_what_is_no_payment(odd: Odd, malee: Client, typed: str) -> None:
    receipt = odd.unmatched()
    assert "There is no payment of this id." in ask(malee, receipt.id, "attach", payment=typed)
    confirm(malee, receipt.id, "attach", payment=typed)
    assert not Act.objects.exists()


def test_money_is_not_attached_to_a_payment_that_is_paid(odd: Odd, malee: Client) -> None:
    code = odd.shop.qr_code()
    odd.told(code)
    receipt = odd.unmatched()
    confirm(malee, receipt.id, "attach", payment=code["payment_id"])
    assert not Act.objects.exists()
    assert Receipt.objects.get(pk=receipt.id).resolution == ""


def test_a_payment_that_is_paid_is_not_offered(odd: Odd, malee: Client) -> None:
    code = odd.shop.qr_code()
    odd.told(code)
    receipt = odd.told(code)
    page = read(malee, page_of(receipt.id))
    assert "same reference" in page
    assert "?payment=" not in page
    assert "is succeeded" in ask(malee, receipt.id, "attach", payment=code["payment_id"])


def test_money_goes_back_to_the_payer(odd: Odd, malee: Client, served_by: Callable[..., Bank]) -> None:
    served_by(sends=[Word("succeeded", "b-77")])
    receipt = odd.unmatched()
    said = ask(malee, receipt.id, "send-back")
    assert "1,500.00 THB go back to the payer, Somchai Jaidee, account xxxxxx7890 at 014 Siam" in said
    assert "1234567890" not in said
    confirm(malee, receipt.id, "send-back")
    order = Transfer.objects.get()
    assert (order.account, order.amount, order.purpose) == ("1234567890", 150_000, "return")
    transfers.work("return", OWNERS["rtn"], now=clock.now)
    page = read(malee, page_of(receipt.id))
    made = Return.objects.get()
    for shown in (made.id, "Completed", "b-77", "It was sent back.", "malee", "xxxxxx7890 at 014 Siam"):
        assert shown in page


def test_money_that_a_bank_would_not_send_waits_again(
    odd: Odd, malee: Client, served_by: Callable[..., Bank]
) -> None:
    served_by(sends=[Word("failed", failure_code="account_closed")])
    receipt = odd.unmatched()
    confirm(malee, receipt.id, "send-back")
    assert "0 exceptions" in read(malee, LIST)
    transfers.work("return", OWNERS["rtn"], now=clock.now)
    assert "Nobody has this reference. It could not be sent back: account_closed." in read(malee, LIST)
    assert buttons(malee, receipt.id) == ["send-back", "send-to", "by-hand"]


def test_money_goes_to_another_account_after_a_second_look(odd: Odd, malee: Client) -> None:
    receipt = odd.duplicate()
    look = malee.post(act_page(receipt.id, "send-to"), ACCOUNT | {"why": WHY})
    said = unescape(look.content.decode())
    assert "1,500.00 THB go to สมหญิง ใจดี, account 4051234567 at 004 Kasikorn Bank" in said
    assert "no-store" in look.headers["Cache-Control"]
    assert not Act.objects.exists()
    confirm(malee, receipt.id, "send-to", **ACCOUNT)
    order = Transfer.objects.get(purpose="return")
    assert (order.bank_code, order.account, order.account_name) == ("004", "4051234567", "สมหญิง ใจดี")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bank_code": "XYZ"}, "There is no such bank."),
        ({"bank_account": "405123456"}, ""),
        ({"bank_account": "40512345678"}, "has 10 digits and nothing else"),
        ({"bank_account": "405-123456-7"}, ""),
        ({"account_name": ""}, "This field is required."),
        ({"why": " "}, "This field is required."),
        ({"why": "x" * 501}, "at most 500 characters"),
    ],
)
def test_an_account_is_judged_before_money_goes(
    odd: Odd, malee: Client, change: dict[str, str], words: str
) -> None:
    receipt = odd.unmatched()
    page = confirm(malee, receipt.id, "send-to", **ACCOUNT | change)
    assert "errorlist" in page
    assert words in page
    assert not Act.objects.exists()


def test_where_the_bank_told_no_account_only_a_named_one_will_do(odd: Odd, malee: Client) -> None:
    receipt = odd.unmatched(payer_bank_code="999")
    assert buttons(malee, receipt.id) == ["send-to", "by-hand"]
    assert "not possible" in ask(malee, receipt.id, "send-back")


def test_what_staff_sent_at_the_bank_themselves_is_noted(odd: Odd, malee: Client, settings: Any) -> None:
    receipt = odd.unmatched()
    settings.SANDBOX_BANK_SECRET = ""
    assert buttons(malee, receipt.id) == ["by-hand"]
    assert "You have sent 1,500.00 THB back at the bank yourself" in ask(malee, receipt.id, "by-hand")
    assert "errorlist" in confirm(malee, receipt.id, "by-hand")
    confirm(malee, receipt.id, "by-hand", bank_reference="FT-2611-001")
    made = Return.objects.get()
    assert (made.by_hand, made.bank_reference, made.status) == (True, "FT-2611-001", "completed")
    page = read(malee, page_of(receipt.id))
    assert "FT-2611-001" in page
    assert "sent by hand" in page


def test_a_message_is_dismissed(odd: Odd, malee: Client) -> None:
    odd.bank.post(b"garbage")
    notice = Notice.objects.get()
    assert "No money moves" in ask(malee, notice.id, "dismiss")
    assert 'notices_for_staff{money="sandbox"} 1.0' in metrics(malee)
    assert "0 exceptions" in confirm(malee, notice.id, "dismiss")
    assert 'notices_for_staff{money="sandbox"} 0.0' in metrics(malee)
    assert "by malee" in read(malee, page_of(notice.id))


def test_a_refund_that_came_back_is_given_to_the_merchant(
    shop: Shop, bank: BankCaller, malee: Client, served_by: Callable[..., Bank]
) -> None:
    served_by(sends=[Word("succeeded")])
    counter = Counter(shop, bank)
    refund = counter.refund(counter.paid())
    carry_out()
    transfers.hear(OrderNotice(refund["refund_id"], "returned"), OWNERS["ref"], now=clock.now())
    said = ask(malee, refund["refund_id"], "keep")
    assert "The 1,500.00 THB that came back are added to the balance of Somtam House." in said
    assert "0 exceptions" in confirm(malee, refund["refund_id"], "keep")
    assert 'refunds_returned{money="sandbox"} 0.0' in metrics(malee)
    assert counter.balance() == (150_000, 0)


def test_the_id_of_a_payment_may_be_pasted_with_spaces(odd: Odd, malee: Client) -> None:
    payment_id = odd.shop.qr_code()["payment_id"]
    receipt = odd.unmatched()
    assert f"Payment {payment_id} of" in ask(malee, receipt.id, "attach", payment=f" {payment_id}\t")


def links(client: Client, path: str) -> dict[str, str]:
    """Of a page, by what they say; of those that say the same the first."""
    found = re.findall(r'<a[^>]* href="([^"]+)"[^>]*>([^<]+)</a>', read(client, path))
    return {text: unescape(href) for href, text in reversed(found)}


def test_whoever_acts_comes_back_to_the_list_as_it_was_filtered(odd: Odd, malee: Client) -> None:
    receipt, filtered = odd.mismatch(), f"{LIST}?why=amount_mismatch"
    case = links(malee, filtered)["1.00 THB too little: 1,500.00 THB were asked for."]
    accept = links(malee, case)["Accept"]
    assert links(malee, case)["Exceptions"] == links(malee, accept)["Exceptions"] == filtered
    assert links(malee, accept)["No, go back"] == case
    first, second = (malee.post(accept, {"why": WHY}).headers["Location"] for _ in range(2))
    assert (first, second) == (filtered, case)
    assert Receipt.objects.get(pk=receipt.id).resolution == "accepted"


def test_a_second_click_changes_nothing_and_says_who_was_first(odd: Odd, malee: Client) -> None:
    receipt = odd.mismatch()
    confirm(malee, receipt.id, "accept")
    balance = odd.shop.get("/v1/balance").json()
    somsak = staff("somsak", "view_receipt", "resolve_receipt")
    for client in (malee, somsak):
        assert "malee" in confirm(client, receipt.id, "accept")
        assert "not possible" in ask(client, receipt.id, "accept")
    confirm(somsak, receipt.id, "send-back")
    assert (Act.objects.count(), LogEntry.objects.count(), Return.objects.count()) == (1, 1, 0)
    assert odd.shop.get("/v1/balance").json() == balance


def test_the_reason_is_shown_as_text(odd: Odd, malee: Client) -> None:
    receipt = odd.mismatch()
    confirm(malee, receipt.id, "accept")
    assert "The customer showed &lt;b&gt;the receipt&lt;/b&gt;" in read(malee, page_of(receipt.id))


def test_a_payer_cannot_speak_on_the_page_that_asks(odd: Odd, malee: Client) -> None:
    receipt = odd.mismatch(payer_name="<script>alert(1)</script>")
    for slug in ("accept", "send-back", "send-to"):
        page = malee.get(act_page(receipt.id, slug)).content.decode()
        assert "<script>alert" not in page


def test_asking_changes_nothing(odd: Odd, malee: Client) -> None:
    receipt = odd.mismatch()
    for slug in SLUGS:
        ask(malee, receipt.id, slug)
    assert not Act.objects.exists()
    assert status(receipt.payment_id) == ("pending", 150_000)


def test_who_may_only_look_decides_nothing(odd: Odd) -> None:
    receipt, onlooker = odd.mismatch(), staff("onlooker", "view_receipt")
    assert buttons(onlooker, receipt.id) == []
    for slug in SLUGS:
        assert onlooker.get(act_page(receipt.id, slug)).status_code == 403
        assert onlooker.post(act_page(receipt.id, slug), {"why": WHY}).status_code == 403
    assert not Act.objects.exists()


def test_nobody_decides_from_another_site(odd: Odd, malee: Client) -> None:
    receipt = odd.mismatch()
    guarded = Client(enforce_csrf_checks=True)
    guarded.force_login(User.objects.get(username="malee"))
    assert guarded.post(act_page(receipt.id, "accept"), {"why": WHY}).status_code == 403
    assert not Act.objects.exists()


@pytest.mark.parametrize(
    ("subject", "slug"), [("rcp_" + "0" * 27, "accept"), ("x", "accept"), (None, "nothing")]
)
def test_what_does_not_exist_is_not_found(odd: Odd, malee: Client, subject: str | None, slug: str) -> None:
    path = act_page(subject or odd.mismatch().id, slug)
    assert malee.get(path).status_code == 404
    assert malee.post(path, {"why": WHY}).status_code == 404


def test_what_can_be_done_about_something_else_is_not_found(odd: Odd, malee: Client) -> None:
    odd.bank.post(b"garbage")
    message, money = Notice.objects.get().id, odd.mismatch().id
    wrong = [(money, "keep"), *((message, slug) for slug in set(ways.BY_SLUG) - {"dismiss", "reopen"})]
    filled = {"why": WHY, "payment": money, **ACCOUNT, "bank_reference": "b", "sure": "on"}
    for subject, slug in wrong:
        assert malee.get(act_page(subject, slug)).status_code == 404, slug
        assert malee.post(act_page(subject, slug), filled).status_code == 404, slug
    assert not Act.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_people_at_once_one_decides(db: None) -> None:
    odd = Odd(open_shop("Race"), BankCaller(Client()))
    clients = [staff(name, "view_receipt", "resolve_receipt") for name in ("malee", "somsak")]
    for _ in range(3):
        receipt = odd.mismatch()
        acts: list[Callable[[], str]] = [
            partial(confirm, clients[0], receipt.id, "accept"),
            partial(confirm, clients[1], receipt.id, "send-back"),
        ]
        at_once(*acts)
        (done,) = Act.objects.filter(subject_id=receipt.id)
        assert LogEntry.objects.filter(object_id=receipt.id).get().user.username == done.by
        paid = status(receipt.payment_id)[0] == "succeeded"
        assert (paid, Return.objects.filter(receipt=receipt).count()) == (
            (True, 0) if done.deed == "accepted" else (False, 1)
        )
