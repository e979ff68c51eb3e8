"""After an act staff read what became of the object, and Thai pages say amounts in Thai."""

import html
import re
from typing import Any

import pytest
from django.test import Client

from payments.models import Payment
from refunds.models import Refund
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import EXCEPTIONS_URL, NOTE, Seller
from tests.staff_acts import act_form, run_act
from webhooks.models import Event

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture
def seller(shop: Shop, bank: SandboxBankClient) -> Seller:
    return Seller(shop, bank)


def message(page: str) -> str:
    """The message on top of a page, without its tags."""
    found = re.search(r'<ul class="messagelist">(.*?)</ul>', page, re.DOTALL)
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", found[1])).split()) if found else ""


def test_refund_says_its_id_amount_and_what_comes_next(seller: Seller, admin_client: Client) -> None:
    paid = seller.paid(150_000)
    said = message(run_act(admin_client, Payment, paid, "refund", amount="500", kind="duplicate"))
    refund = Refund.objects.get()
    assert said == f"Refund: done. Refund {refund.pk} 500.00 THB: It is sent to the bank in a moment."
    said = message(run_act(admin_client, Refund, refund.pk, "cancel"))
    assert said.startswith(f"Cancel the refund: done. Refund {refund.pk} 500.00 THB: 500.00 THB was not sent")


def test_decision_says_what_became_of_the_money(seller: Seller, admin_client: Client) -> None:
    held = seller.late()
    page = admin_client.post(f"{EXCEPTIONS_URL}{held.pk}/do/accept/", act_form(reason=NOTE), follow=True)
    said = message(page.content.decode())
    assert said.startswith("Accept: done. ")
    assert "1,500.00 THB at the sandbox bank" in said
    assert "The money is accepted for this payment." in said


def test_merchant_act_repeats_what_it_does(seller: Seller, admin_client: Client) -> None:
    said = message(run_act(admin_client, type(seller.shop.merchant), seller.shop.merchant.pk, "suspend"))
    assert said.startswith("Suspend: done. From now on the keys of Somtam House are refused.")


def test_thai_pages_say_baht_and_the_api_and_events_keep_the_code(
    seller: Seller, admin_client: Client
) -> None:
    thai: Any = {"HTTP_ACCEPT_LANGUAGE": "th"}
    paid = seller.paid(150_000)
    page = admin_client.get(f"/admin/payments/payment/{paid}/change/", **thai).content.decode()
    assert "1,500.00 บาท" in page
    assert "THB" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    admin_client.post(
        f"/admin/payments/payment/{paid}/do/refund/",
        act_form(amount="500", kind="other"),
        follow=True,
        **thai,
    )
    for event in Event.objects.all():
        assert "บาท" not in event.body.decode()
    assert seller.shop.payment(paid)["amount_display"] == "1,500.00 THB"
