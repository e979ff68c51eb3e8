"""Acts of staff on exceptions in the console: ask, confirm, record."""

import re
from collections.abc import Callable
from functools import partial
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.test import Client

from banks import ReportedTransfer, TransferResult
from core import clock
from payments.models import Payment
from reconciliation.exceptions.exception_acts import EXCEPTION_ACTS
from reconciliation.matching.order_completion import HANDLERS
from reconciliation.models import BankNotification, BankTransaction, Resolution, Return
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, open_shop
from tests.reconciliation.builders import (
    EXCEPTIONS_URL,
    RESOLVES,
    Seller,
    exception_url,
    get_page,
    staff_client,
)
from tests.refunds.builders import RefundShop, send_due_refunds
from tests.staff_acts import act_form, acts_of_staff
from tests.transfers.builders import Bank
from transfers import services as transfers
from transfers.models import Transfer

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
NOTE = "The customer showed <b>the receipt</b> of the shop."
ACCOUNT = {"bank_code": "KBANK", "bank_account": "4051234567", "account_name": "สมหญิง ใจดี"}
SLUGS = ["accept", "attach", "send-back", "send-to", "manual-return", "dismiss", "credit"]


def act_page(subject_id: str, slug: str) -> str:
    return f"{EXCEPTIONS_URL}{quote(subject_id)}/do/{slug}/"


def ask(client: Client, subject_id: str, slug: str, **query: str) -> str:
    """Return the page that asks for confirmation."""
    return unescape(client.get(act_page(subject_id, slug), query, follow=True).content.decode())


def confirm(client: Client, subject_id: str, slug: str, **fields: str) -> str:
    """Return the page after the confirmation."""
    posted = act_form(reason=NOTE, sure="yes") | fields
    answer = client.post(act_page(subject_id, slug), posted, follow=True)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def buttons(client: Client, subject_id: str) -> list[str]:
    found = re.findall(r'href="[^"]*/do/([a-z-]+)/"', get_page(client, exception_url(subject_id)))
    return [slug for slug in SLUGS if slug in found]


def status(payment_id: str) -> tuple[str, int]:
    payment = Payment.objects.get(pk=payment_id)
    return payment.status, payment.received


def metrics(client: Client) -> str:
    return str(client.get("/metrics").content.decode())


def test_exception_page_shows_only_the_allowed_actions(seller: Seller, malee: Client) -> None:
    seller.bank.post(b"garbage")
    assert buttons(malee, seller.mismatch().id) == ["accept", "send-back", "send-to", "manual-return"]
    assert buttons(malee, seller.late().id) == ["accept", "send-back", "send-to", "manual-return"]
    assert buttons(malee, seller.unmatched().id) == ["send-back", "send-to", "manual-return"]
    assert buttons(malee, seller.duplicate().id) == ["send-back", "send-to", "manual-return"]
    assert buttons(malee, BankNotification.objects.get(result="unreadable").id) == ["dismiss"]
    assert buttons(malee, seller.report(seller.shop.qr_code(), type="reversal").id) == ["dismiss"]
    assert buttons(malee, seller.report(seller.shop.qr_code()).id) == []


def test_staff_accept_a_wrong_amount(seller: Seller, malee: Client) -> None:
    bank_transaction = seller.mismatch(149_900)
    text = ask(malee, bank_transaction.id, "accept")
    assert (
        f"Payment {bank_transaction.payment_id} of Somtam House asked for 1,500.00 THB. It succeeds" in text
    )
    assert "with the 1,499.00 THB that arrived" in text
    assert "Accept: done." in confirm(malee, bank_transaction.id, "accept")
    assert status(bank_transaction.payment_id) == ("succeeded", 149_900)
    done = Resolution.objects.get()
    assert (done.subject_id, done.type, done.actor) == (bank_transaction.id, "accepted", "staff:malee")
    assert done.note == NOTE
    record = acts_of_staff().get()
    assert (record.actor, record.object_id, record.reason) == ("staff:malee", bank_transaction.id, NOTE)
    assert (record.before["resolution_state"], record.after["decision"]) == ("", "accepted")


def test_staff_accept_late_money(seller: Seller, malee: Client) -> None:
    bank_transaction = seller.late()
    assert "succeeds with this 1,500.00 THB" in ask(malee, bank_transaction.id, "accept")
    confirm(malee, bank_transaction.id, "accept")
    assert status(bank_transaction.payment_id) == ("succeeded", 150_000)


def test_staff_attach_money_to_a_candidate_payment_with_one_click(seller: Seller, malee: Client) -> None:
    code = seller.shop.qr_code()
    bank_transaction = seller.report(code, reference1="NOBODYKNOWSTHIS00000")
    offered = re.findall(
        r'/do/attach/\?payment_id=(pay_\w+)"', get_page(malee, exception_url(bank_transaction.id))
    )
    assert offered == [code["payment_id"]]
    text = ask(malee, bank_transaction.id, "attach", payment_id=offered[0])
    assert f"Payment {offered[0]} of Somtam House succeeds with this 1,500.00 THB" in text
    assert "done." in confirm(malee, bank_transaction.id, "attach", payment_id=offered[0])
    assert status(code["payment_id"]) == ("succeeded", 150_000)
    assert "It was attached to payment" in get_page(malee, exception_url(bank_transaction.id))


@pytest.mark.parametrize("typed", ["pay_" + "0" * 27, "pay_1", "<script>", "btx_" + "0" * 27])
def test_attach_with_an_id_that_is_not_a_payment_is_refused(
    seller: Seller, malee: Client, typed: str
) -> None:
    bank_transaction = seller.unmatched()
    assert "There is no payment with this id." in ask(malee, bank_transaction.id, "attach", payment_id=typed)
    confirm(malee, bank_transaction.id, "attach", payment_id=typed)
    assert not Resolution.objects.exists()


def test_attach_to_a_paid_payment_is_refused(seller: Seller, malee: Client) -> None:
    code = seller.shop.qr_code()
    seller.report(code)
    bank_transaction = seller.unmatched()
    confirm(malee, bank_transaction.id, "attach", payment_id=code["payment_id"])
    assert not Resolution.objects.exists()
    assert BankTransaction.objects.get(pk=bank_transaction.id).resolution_state == ""


def test_paid_payment_is_not_offered_as_candidate(seller: Seller, malee: Client) -> None:
    code = seller.shop.qr_code()
    seller.report(code)
    bank_transaction = seller.report(code)
    page = get_page(malee, exception_url(bank_transaction.id))
    assert "same reference" in page
    assert "?payment=" not in page
    assert "is succeeded" in ask(malee, bank_transaction.id, "attach", payment_id=code["payment_id"])


def test_staff_send_money_back_to_the_payer(
    seller: Seller, malee: Client, served_by: Callable[..., Bank]
) -> None:
    served_by(sends=[TransferResult("succeeded", "b-77")])
    bank_transaction = seller.unmatched()
    text = ask(malee, bank_transaction.id, "send-back")
    assert "1,500.00 THB is sent back to the payer, Somchai Jaidee, account xxxxxx7890 at 014 Siam" in text
    assert "1234567890" not in text
    confirm(malee, bank_transaction.id, "send-back")
    order = Transfer.objects.get()
    assert (order.account, order.amount, order.purpose) == ("1234567890", 150_000, "return")
    transfers.run_due("return", HANDLERS["rtn"], now=clock.now)
    page = get_page(malee, exception_url(bank_transaction.id))
    made = Return.objects.get()
    for shown in (
        made.id,
        "Completed",
        "b-77",
        "1,500.00 THB went back to the payer.",
        "malee",
        "xxxxxx7890 at 014 Siam",
    ):
        assert shown in page


def test_rejected_return_reopens_the_exception(
    seller: Seller, malee: Client, served_by: Callable[..., Bank]
) -> None:
    served_by(sends=[TransferResult("failed", failure_code="invalid_account")])
    bank_transaction = seller.unmatched()
    confirm(malee, bank_transaction.id, "send-back")
    assert "0 exceptions" in get_page(malee, EXCEPTIONS_URL)
    transfers.run_due("return", HANDLERS["rtn"], now=clock.now)
    text = "Unknown reference. 1,500.00 THB could not be sent back: the account does not exist."
    assert text in get_page(malee, EXCEPTIONS_URL)
    assert buttons(malee, bank_transaction.id) == ["send-back", "send-to", "manual-return"]


def test_return_to_another_account_needs_a_second_confirmation(seller: Seller, malee: Client) -> None:
    bank_transaction = seller.duplicate()
    look = malee.post(act_page(bank_transaction.id, "send-to"), ACCOUNT | act_form(reason=NOTE))
    text = unescape(look.content.decode())
    assert "1,500.00 THB is sent to สมหญิง ใจดี, account 4051234567 at 004 Kasikorn Bank" in text
    assert "no-store" in look.headers["Cache-Control"]
    assert not Resolution.objects.exists()
    confirm(malee, bank_transaction.id, "send-to", **ACCOUNT | {"bank_account": "405-1-23456-7"})
    order = Transfer.objects.get(purpose="return")
    assert (order.bank_code, order.account, order.account_name) == ("004", "4051234567", "สมหญิง ใจดี")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bank_code": "XYZ"}, "is not the code or short name of a bank"),
        ({"bank_account": "405123456"}, ""),
        ({"bank_account": "40512345678"}, "has 10 digits"),
        ({"account_name": ""}, "This field is required."),
        ({"reason": " "}, "This field is required."),
        ({"reason": "x" * 501}, "at most 500 characters"),
    ],
)
def test_return_account_is_validated(
    seller: Seller, malee: Client, change: dict[str, str], words: str
) -> None:
    bank_transaction = seller.unmatched()
    page = confirm(malee, bank_transaction.id, "send-to", **ACCOUNT | change)
    assert "errorlist" in page
    assert words in page
    assert not Resolution.objects.exists()


def test_return_without_payer_account_needs_an_entered_account(seller: Seller, malee: Client) -> None:
    bank_transaction = seller.unmatched(payer_bank_code="999")
    assert buttons(malee, bank_transaction.id) == ["send-to", "manual-return"]
    assert "not possible" in ask(malee, bank_transaction.id, "send-back")


def test_staff_record_a_manual_return(seller: Seller, malee: Client, settings: Any) -> None:
    bank_transaction = seller.unmatched()
    settings.SANDBOX_BANK_SECRET = ""
    assert buttons(malee, bank_transaction.id) == ["manual-return"]
    assert "You have sent 1,500.00 THB back at the bank yourself" in ask(
        malee, bank_transaction.id, "manual-return"
    )
    assert "errorlist" in confirm(malee, bank_transaction.id, "manual-return")
    confirm(malee, bank_transaction.id, "manual-return", bank_reference="FT-2611-001")
    made = Return.objects.get()
    assert (made.is_manual, made.bank_reference, made.status) == (True, "FT-2611-001", "completed")
    page = get_page(malee, exception_url(bank_transaction.id))
    assert "FT-2611-001" in page
    assert "sent manually" in page


def test_staff_dismiss_a_bank_message(seller: Seller, malee: Client) -> None:
    seller.bank.post(b"garbage")
    notification = BankNotification.objects.get()
    assert "No money moves" in ask(malee, notification.id, "dismiss")
    assert 'thaiqr_notification_exceptions{money="sandbox"} 1.0' in metrics(malee)
    assert "0 exceptions" in confirm(malee, notification.id, "dismiss")
    assert 'thaiqr_notification_exceptions{money="sandbox"} 0.0' in metrics(malee)
    assert "by malee" in get_page(malee, exception_url(notification.id))


def test_staff_credit_a_returned_refund_to_the_merchant(
    shop: Shop, bank: SandboxBankClient, malee: Client, served_by: Callable[..., Bank]
) -> None:
    served_by(sends=[TransferResult("succeeded")])
    refund_shop = RefundShop(shop, bank)
    refund = refund_shop.refund(refund_shop.paid())
    send_due_refunds()
    transfers.apply_notification(
        ReportedTransfer(refund["refund_id"], "returned"), HANDLERS["ref"], now=clock.now()
    )
    text = ask(malee, refund["refund_id"], "credit")
    assert "The 1,500.00 THB that the bank returned is added to the balance of Somtam House." in text
    assert "0 exceptions" in confirm(malee, refund["refund_id"], "credit")
    assert 'thaiqr_refunds_returned_open{money="sandbox"} 0.0' in metrics(malee)
    assert refund_shop.balance() == (150_000, 0)


def test_pasted_payment_id_may_have_spaces(seller: Seller, malee: Client) -> None:
    payment_id = seller.shop.qr_code()["payment_id"]
    bank_transaction = seller.unmatched()
    assert f"Payment {payment_id} of" in ask(
        malee, bank_transaction.id, "attach", payment_id=f" {payment_id}\t"
    )


def links(client: Client, path: str) -> dict[str, str]:
    """Return the links of a page after its menu by their text; of equal texts the first."""
    _, content = get_page(client, path).split("</nav>", 1)
    found = re.findall(r'<a[^>]* href="([^"]+)"[^>]*>([^<]+)</a>', content)
    return {text: unescape(href) for href, text in reversed(found)}


def test_exception_list_keeps_the_filters_after_an_action(seller: Seller, malee: Client) -> None:
    bank_transaction, filtered = seller.mismatch(), f"{EXCEPTIONS_URL}?reason__exact=amount_mismatch"
    case = links(malee, filtered)["Wrong amount: 1.00 THB too little, 1,500.00 THB expected."]
    accept = links(malee, case)["Accept"]
    assert links(malee, case)["Exceptions"] == links(malee, accept)["Exceptions"] == filtered
    assert links(malee, accept)["Cancel"] == case
    form = act_form(reason=NOTE)
    first, second = (malee.post(accept, form).headers["Location"] for _ in range(2))
    assert (first, second) == (filtered, case)
    assert BankTransaction.objects.get(pk=bank_transaction.id).resolution_state == "accepted"


def test_second_click_on_an_action_changes_nothing_and_names_the_first_user(
    seller: Seller, malee: Client
) -> None:
    bank_transaction = seller.mismatch()
    confirm(malee, bank_transaction.id, "accept")
    balance = seller.shop.get("/v1/balance").json()
    somsak = staff_client("somsak", *RESOLVES)
    for client in (malee, somsak):
        assert "malee" in confirm(client, bank_transaction.id, "accept")
        assert "not possible" in ask(client, bank_transaction.id, "accept")
    confirm(somsak, bank_transaction.id, "send-back")
    assert (Resolution.objects.count(), acts_of_staff().count(), Return.objects.count()) == (1, 1, 0)
    assert seller.shop.get("/v1/balance").json() == balance


def test_note_of_staff_is_escaped_on_the_page(seller: Seller, malee: Client) -> None:
    bank_transaction = seller.mismatch()
    confirm(malee, bank_transaction.id, "accept")
    assert "The customer showed &lt;b&gt;the receipt&lt;/b&gt;" in get_page(
        malee, exception_url(bank_transaction.id)
    )


def test_payer_name_is_escaped_on_the_confirmation_page(seller: Seller, malee: Client) -> None:
    bank_transaction = seller.mismatch(payer_name="<script>alert(1)</script>")
    for slug in ("accept", "send-back", "send-to"):
        page = malee.get(act_page(bank_transaction.id, slug)).content.decode()
        assert "<script>alert" not in page


def test_opening_the_confirmation_page_changes_nothing(seller: Seller, malee: Client) -> None:
    bank_transaction = seller.mismatch()
    for slug in SLUGS:
        ask(malee, bank_transaction.id, slug)
    assert not Resolution.objects.exists()
    assert status(bank_transaction.payment_id) == ("pending", 150_000)


def test_view_permission_does_not_allow_exception_actions(seller: Seller) -> None:
    bank_transaction, viewer = seller.mismatch(), staff_client("onlooker", "view_banktransaction")
    assert buttons(viewer, bank_transaction.id) == []
    for slug in SLUGS:
        assert viewer.get(act_page(bank_transaction.id, slug)).status_code == 403
        assert viewer.post(act_page(bank_transaction.id, slug), act_form(reason=NOTE)).status_code == 403
    assert not Resolution.objects.exists()


def test_exception_actions_need_a_csrf_token(seller: Seller, malee: Client) -> None:
    bank_transaction = seller.mismatch()
    guarded = Client(enforce_csrf_checks=True)
    guarded.force_login(User.objects.get(username="malee"))
    assert guarded.post(act_page(bank_transaction.id, "accept"), act_form(reason=NOTE)).status_code == 403
    assert not Resolution.objects.exists()


@pytest.mark.parametrize(
    ("subject", "slug"), [("btx_" + "0" * 27, "accept"), ("x", "accept"), (None, "nothing")]
)
def test_unknown_exception_or_action_is_not_found(
    seller: Seller, malee: Client, subject: str | None, slug: str
) -> None:
    path = act_page(subject or seller.mismatch().id, slug)
    assert malee.get(path).status_code == 404
    assert malee.post(path, act_form(reason=NOTE)).status_code == 404


def test_act_for_another_kind_of_exception_is_not_possible(seller: Seller) -> None:
    malee = staff_client("malee", *RESOLVES, "confirm_banktransaction")
    seller.bank.post(b"garbage")
    message, money = BankNotification.objects.get().id, seller.mismatch().id
    wrong = [
        (money, "credit"),
        *((message, each.slug) for each in EXCEPTION_ACTS if each.slug not in ("dismiss", "reopen")),
    ]
    filled = {"payment_id": money, **ACCOUNT, "bank_reference": "b", "sure": "on", "transfer_id": "atr_x"}
    for subject, slug in wrong:
        assert "This is not possible now." in ask(malee, subject, slug), slug
        assert malee.post(act_page(subject, slug), act_form(**filled)).status_code == 404, slug
    assert malee.post(act_page(money, "keep"), act_form(**filled)).status_code == 404
    assert not Resolution.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_concurrent_staff_actions_resolve_an_exception_once(db: None) -> None:
    seller = Seller(open_shop("Race"), SandboxBankClient(Client()))
    clients = [staff_client(name, *RESOLVES) for name in ("malee", "somsak")]
    for _ in range(3):
        bank_transaction = seller.mismatch()
        resolutions_made: list[Callable[[], str]] = [
            partial(confirm, clients[0], bank_transaction.id, "accept"),
            partial(confirm, clients[1], bank_transaction.id, "send-back"),
        ]
        run_concurrently(*resolutions_made)
        (done,) = Resolution.objects.filter(subject_id=bank_transaction.id)
        assert acts_of_staff().filter(object_id=bank_transaction.id).get().actor == done.actor
        paid = status(bank_transaction.payment_id)[0] == "succeeded"
        assert (paid, Return.objects.filter(bank_transaction=bank_transaction).count()) == (
            (True, 0) if done.type == "accepted" else (False, 1)
        )
