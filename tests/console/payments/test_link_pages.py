"""Payment links in the console: their list, their page with the picture, and their end."""

import re
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client

from links.models import PaymentLink
from tests.conftest import SandboxBankClient, Shop
from tests.links.conftest import LinkShop, Visitor
from tests.staff_acts import acts_of_staff, run_act

PAGE = "/admin/links/paymentlink/"


@pytest.fixture
def links(shop: Shop, bank: SandboxBankClient) -> LinkShop:
    return LinkShop(shop, bank)


def page_of(link: dict[str, Any]) -> str:
    return f"{PAGE}{quote(link['payment_link_id'])}/change/"


def test_list_shows_status_and_payments(links: LinkShop, admin_client: Client) -> None:
    once, many = links.link(reference="INV-7"), links.link(max_payments=None, reference="COUNTER")
    links.paid(Visitor(once).code())
    links.paid(Visitor(many).code())
    shown = admin_client.get(PAGE).content.decode()
    for text in ("INV-7", "COUNTER", "Completed", "Active", "1 / 1", "1,500.00 THB"):
        assert text in shown
    assert "COUNTER" not in admin_client.get(f"{PAGE}?q=INV-7").content.decode()


def test_page_has_the_picture_and_marks_too_many_payments(links: LinkShop, admin_client: Client) -> None:
    link = links.link(amount_min=2_000, amount_max=200_000)
    codes = [Visitor(link).code(amount="20"), Visitor(link).code(amount="30")]
    shown = admin_client.get(page_of(link)).content.decode()
    assert "data:image/svg+xml;base64," in shown
    assert link["url"] in shown
    assert "20.00 THB - 2,000.00 THB" in shown
    for code in codes:
        links.paid(code)
    shown = admin_client.get(page_of(link)).content.decode()
    assert re.search('<span class="state [a-z]+">2 / 1</span>', shown)
    listed = admin_client.get(f"/admin/payments/payment/?q={link['payment_link_id']}").content.decode()
    assert all(f"pay_{code[3:]}" in listed for code in codes)


def test_page_of_a_payment_links_to_its_link(links: LinkShop, admin_client: Client) -> None:
    link = links.link()
    payment_id = f"pay_{Visitor(link).code()[3:]}"
    assert (
        page_of(link)
        in admin_client.get(f"/admin/payments/payment/{quote(payment_id)}/change/").content.decode()
    )


def test_staff_deactivate_a_link_once(links: LinkShop, admin_client: Client) -> None:
    link = links.link()
    assert "Deactivate the payment link" in admin_client.get(page_of(link)).content.decode()
    run_act(admin_client, PaymentLink, link["payment_link_id"], "deactivate")
    assert links.read(link)["status"] == "deactivated"
    assert PaymentLink.objects.get().deactivated_by.startswith("staff:")
    record = acts_of_staff().get()
    assert (record.act, record.object_id) == ("link_deactivated", link["payment_link_id"])
    assert "Deactivate the payment link" not in admin_client.get(page_of(link)).content.decode()
