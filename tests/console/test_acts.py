"""Acts of staff on one object: the page explains them, they need a reason, and they happen once."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from html import unescape
from typing import Any

import pytest
import time_machine
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client

from audit_trail.models import AuditRecord
from core import clock
from payments.models import Payment, PaymentStatus
from refunds.models import Refund
from tests.conftest import SandboxBankClient, Shop
from tests.webhooks.builders import make_endpoint
from webhooks.models import Delivery, DeliveryState

pytestmark = pytest.mark.slow

REASON = "The customer called: the soup was cold."


def staff(name: str, *permissions: str) -> Client:
    person = User.objects.create_user(name, is_staff=True)
    found = [
        Permission.objects.get(content_type__app_label=app, codename=code)
        for app, code in (each.split(".") for each in permissions)
    ]
    person.user_permissions.set(found)
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def malee(db: None) -> Client:
    return staff("malee", "payments.view_payment", "refunds.create_refund", "qrcodes.expire_qrcode")


def act_url(payment_id: str, slug: str) -> str:
    return f"/admin/payments/payment/{quote(payment_id)}/do/{slug}/"


def token_of(client: Client, url: str) -> str:
    page = client.get(url)
    assert page.status_code == 200
    found = re.search(r'name="token" value="([^"]+)"', page.content.decode())
    assert found
    return found[1]


def refund(client: Client, payment_id: str, amount: str, **changes: str) -> Any:
    url = act_url(payment_id, "refund")
    values = {"amount": amount, "kind": "other", "reason": REASON, "token": token_of(client, url)}
    return client.post(url, values | changes)


def text_of(response: Any) -> str:
    return unescape(re.sub(r"\s+", " ", response.content.decode()))


@pytest.fixture
def paid(shop: Shop, bank: SandboxBankClient) -> str:
    code = shop.qr_code(amount=199_800)
    bank.notify(code)
    return str(code["payment_id"])


def test_staff_refund_half_of_a_payment(shop: Shop, malee: Client, paid: str) -> None:
    response = refund(malee, paid, "999")
    assert response.headers["Location"] == f"/admin/payments/payment/{quote(paid)}/change/"
    made = Refund.objects.get()
    assert (made.payment_id, made.amount, made.note, made.actor) == (paid, 99_900, REASON, "staff:malee")
    record = AuditRecord.objects.get(act="refund_created")
    assert (record.object_id, record.reason, record.actor) == (paid, REASON, "staff:malee")
    assert record.after["refund"] == made.id
    page = text_of(malee.get(response.headers["Location"]))
    assert "Refund of 999.00 THB: It is sent to the bank in a moment." in page
    assert shop.get(f"/v1/refunds/{made.id}").json()["amount"] == 99_900


def test_page_of_a_refund_explains_it_and_offers_all_that_is_left(malee: Client, paid: str) -> None:
    refund(malee, paid, "998")
    page = text_of(malee.get(act_url(paid, "refund")))
    assert "Up to 1,000.00 THB of 1,998.00 THB goes back to the payer" in page
    assert 'value="1000.00"' in page


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"amount": "1998.01"}, "At most 1,998.00 THB can be refunded."),
        ({"amount": "0"}, "Enter an amount in baht"),
        ({"amount": "-5"}, "Enter an amount in baht"),
        ({"amount": "9" * 20}, "At most 1,998.00 THB can be refunded."),
        ({"amount": "ten"}, "Enter an amount in baht"),
        ({"reason": "  "}, "This field is required."),
        ({"reason": "x" * 501}, "at most 500 characters"),
        ({"kind": "x"}, "Select a valid choice."),
        ({"token": "x"}, "Open the page again."),
        ({"token": ""}, "Open the page again."),
    ],
)
def test_wrong_values_are_explained_and_change_nothing(
    malee: Client, paid: str, changes: dict[str, str], message: str
) -> None:
    response = refund(malee, paid, **{"amount": "10"} | changes)
    assert response.status_code == 200
    assert message in text_of(response)
    assert not Refund.objects.exists()
    assert not AuditRecord.objects.filter(act="refund_created").exists()


def test_same_form_twice_refunds_once(malee: Client, paid: str) -> None:
    token = token_of(malee, act_url(paid, "refund"))
    first, second = (refund(malee, paid, "10", token=token) for _ in range(2))
    assert (first.status_code, second.status_code) == (302, 302)
    assert Refund.objects.count() == 1
    assert "This was done already" in text_of(malee.get(second.headers["Location"]))


@pytest.mark.django_db(transaction=True)
def test_double_click_refunds_once(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code(amount=199_800)
    bank.notify(code)
    person = staff("malee", "payments.view_payment", "refunds.create_refund")
    url, session = act_url(code["payment_id"], "refund"), person.cookies
    values = {"amount": "10", "kind": "other", "reason": REASON, "token": token_of(person, url)}

    def click(_: int) -> int:
        client = Client()
        client.cookies = session
        try:
            return int(client.post(url, values).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(click, range(4))) == [302] * 4
    assert Refund.objects.count() == 1
    assert AuditRecord.objects.filter(act="refund_created").count() == 1


def test_staff_expire_a_code(shop: Shop, malee: Client, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False):
        code = shop.qr_code()
        url = act_url(code["payment_id"], "expire")
        assert "can no longer be paid" in text_of(malee.get(url))
        malee.post(url, {"reason": REASON, "token": token_of(malee, url)})
        assert Payment.objects.get().status == PaymentStatus.EXPIRED
        # There is nothing left to expire.
        response = malee.get(url)
        assert response.status_code == 302
        assert "This is not possible now." in text_of(malee.get(response.headers["Location"]))


def test_refusal_of_the_service_is_shown(
    shop: Shop, bank: SandboxBankClient, malee: Client, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False):
        code = shop.qr_code()
        url = act_url(code["payment_id"], "expire")
        token = token_of(malee, url)
        bank.notify(code)
        response = malee.post(url, {"reason": REASON, "token": token})
    assert response.status_code == 200
    assert 'class="errorlist nonfield"' in text_of(response)
    assert Payment.objects.get().status == PaymentStatus.SUCCEEDED
    assert not AuditRecord.objects.filter(act="code_expired").exists()


def test_page_offers_only_possible_acts_with_permission(
    shop: Shop, bank: SandboxBankClient, malee: Client
) -> None:
    code = shop.qr_code()
    path = f"/admin/payments/payment/{quote(code['payment_id'])}/change/"
    assert ("/do/expire/" in text_of(malee.get(path)), "/do/refund/" in text_of(malee.get(path))) == (
        True,
        False,
    )
    bank.notify(code)
    assert ("/do/expire/" in text_of(malee.get(path)), "/do/refund/" in text_of(malee.get(path))) == (
        False,
        True,
    )
    viewer = staff("viewer", "payments.view_payment")
    assert "/do/" not in text_of(viewer.get(path))


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize(
    ("permissions", "status"),
    [(["payments.view_payment"], 403), (["refunds.create_refund"], 403), ([], 403)],
)
def test_act_needs_its_permission_and_the_right_to_view(
    paid: str, method: str, permissions: list[str], status: int
) -> None:
    client = staff("somsak", *permissions)
    values = {
        "amount": "10",
        "kind": "other",
        "reason": REASON,
        "token": "5f3b5f0e-5d0c-4d7e-9b55-b8ff8ad8dcd4",
    }
    assert getattr(client, method)(act_url(paid, "refund"), values).status_code == status
    assert not Refund.objects.exists()


@pytest.mark.parametrize("path", ["/admin/payments/payment/pay_x/do/refund/", "unknown act"])
def test_unknown_object_or_act_is_not_found(malee: Client, paid: str, path: str) -> None:
    assert malee.get(act_url(paid, "nothing") if path == "unknown act" else path).status_code == 404


def test_staff_send_an_event_again(shop: Shop, bank: SandboxBankClient, admin_client: Client) -> None:
    make_endpoint(shop)
    code = shop.qr_code()
    bank.notify(code)
    Delivery.objects.update(state=DeliveryState.FAILED, finished_at=clock.now())
    delivery = Delivery.objects.get()
    payment = text_of(admin_client.get(f"/admin/payments/payment/{quote(code['payment_id'])}/change/"))
    assert "The merchant's server did not accept the event payment.succeeded." in payment
    page = f"/admin/webhooks/delivery/{quote(delivery.id)}"
    shown = text_of(admin_client.get(f"{page}/change/"))
    assert "Send again" in shown and "payment.succeeded" in shown
    url = f"{page}/do/resend/"
    admin_client.post(url, {"reason": REASON, "token": token_of(admin_client, url)})
    again = Delivery.objects.get(manual_number=1)
    assert (again.event_id, again.state) == (delivery.event_id, DeliveryState.PENDING)
    assert AuditRecord.objects.get(act="delivery_resent").after["delivery"] == again.id
