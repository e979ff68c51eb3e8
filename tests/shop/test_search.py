"""The search of a shop finds what its role may see, of its own merchant."""

from typing import Any

import pytest
from django.test import Client

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from console.people.roles import ShopRole
from core import clock
from core.console import admin_lists
from links import services as links
from operations.data_protection import shop_fence
from refunds.models import ClaimLink
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import staff_client
from tests.refunds.builders import NOBODY, RefundShop
from tests.shop.people import list_url, person_of, quoted, row_url
from tests.staff_acts import act_form

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
BOOKS = (ShopRole.OWNER, ShopRole.MANAGER, ShopRole.ACCOUNTANT)
PAYER = {"payer_name": "นาย สมชาย ใจดี", "payer_account": "4051239876"}


def found(client: Client, query: str, page: str = "/shop/search/") -> str:
    answer = client.get(page, {"q": query})
    assert answer.status_code in (200, 302), answer.content
    return str(answer.headers.get("Location", "")) + answer.content.decode()


def page_of(code: dict[str, Any]) -> str:
    return f"{list_url('payments.payment')}{quoted(code['payment_id'])}/change/"


@pytest.mark.parametrize("role", list(ShopRole))
def test_owner_manager_and_accountant_search_and_others_do_not(shop: Shop, role: ShopRole) -> None:
    code, client = shop.qr_code(reference="order 17", amount=97_300), person_of(shop, role)
    if role not in BOOKS:
        for page in ("/shop/search/", "/shop/search/typed/"):
            assert client.get(page, {"q": "order 17"}).status_code == 403
        assert "global-search" not in client.get("/shop/").content.decode()
        return
    assert "global-search" in client.get("/shop/").content.decode()
    whole = (code["payment_id"].lower(), code["qr_code_id"], f"https://x/pay/{code['qr_code_id']}")
    for query in (*whole, "ORDER 1", "973.00 บาท", "฿973"):
        assert page_of(code) in found(client, query), query
        assert page_of(code) in found(client, query, "/shop/search/typed/"), query
        assert code["payment_id"] in found(client, query, list_url("payments.payment")), query


def test_search_finds_nothing_of_a_rival(
    shop: Shop, other_shop: Shop, bank: SandboxBankClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = other_shop.qr_code(reference="order 17", amount=97_300)
    bank.notify(code, **PAYER)
    link = links.create(merchant=other_shop.merchant, amount=97_300, expiry_minutes=15, now=clock.now())
    rival = person_of(other_shop)
    queries = (
        *(code["payment_id"], code["payment_id"][:20], code["qr_code_id"].upper(), link.id, link.url),
        *("order 17", "ord", "973", "ใจดี", "9876", f"https://x/pay/{code['qr_code_id']}"),
    )

    def check(name: str) -> None:
        owner = person_of(shop, name=name)  # the searches of one person are limited
        for query in queries:
            for page in ("/shop/search/", "/shop/search/typed/", list_url("payments.payment")):
                shown = found(owner, query, page)
                assert quoted(code["payment_id"]) not in shown, (query, page)
                assert quoted(link.id) not in shown, (query, page)
            assert "Nothing was found." in found(owner, query), query

    check("somsri")
    monkeypatch.setattr(shop_fence, "narrowed", lambda found, merchant_id: found)
    check("malee")
    for query in queries[:3]:
        assert page_of(code) in found(rival, query), query
    assert row_url(link) in found(rival, link.url)


@pytest.mark.parametrize("query", ["สมชาย", "ใจดี", "นาย สมชาย ใจดี", "9876", "xxx-x-x9876"])
def test_names_and_accounts_are_found_by_those_who_may_see_them(
    shop: Shop, bank: SandboxBankClient, query: str
) -> None:
    code = shop.qr_code()
    bank.notify(code, **PAYER)
    assert page_of(code) in found(person_of(shop, ShopRole.MANAGER), query)
    accountant = person_of(shop, ShopRole.ACCOUNTANT)
    assert "Nothing was found." in found(accountant, query)
    assert "found-1" not in found(person_of(shop, ShopRole.OWNER), query, "/shop/search/typed/")
    assert not AuditRecord.objects.filter(act=Act.SEARCHED).exists()


def test_search_of_staff_who_look_is_recorded(shop: Shop, bank: SandboxBankClient) -> None:
    code = shop.qr_code()
    bank.notify(code, **PAYER)
    staff = staff_client("somsri", "look_at_shop", "view_personal_data")
    staff.post(f"/shop/look/{shop.merchant.pk}/", act_form())
    assert page_of(code) in found(staff, "ใจดี")
    record = AuditRecord.objects.get(act=Act.SEARCHED)
    assert (record.actor, record.object_type) == ("staff:somsri", "payments.payment")
    assert record.after == {"name": "จ***", "rows": 1}


def test_address_of_a_claim_page_leads_only_its_shop_to_the_refund(
    shop: Shop, other_shop: Shop, bank: SandboxBankClient
) -> None:
    refunds = RefundShop(shop, bank)
    refund_id = refunds.refund(refunds.paid(payer=NOBODY))["refund_id"]
    shop.post(f"/v1/refunds/{refund_id}/claim-link", {})
    url = f"https://pay.example/claim/{ClaimLink.objects.get().token}"
    page = f"{list_url('refunds.refund')}{quoted(refund_id)}/change/"
    assert page in found(person_of(shop), url)
    assert page not in found(person_of(other_shop), url)


def test_references_of_others_do_not_make_the_search_of_a_shop_longer(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their beginnings are looked for in the newest payments of the shop, whole ones in all."""
    monkeypatch.setattr(admin_lists, "FILTERED_ROWS", 1)
    older, newer = shop.qr_code(reference="INV-1"), shop.qr_code(reference="INV-2")
    owner = person_of(shop)
    shown = found(owner, "inv", list_url("payments.payment"))
    assert (older["payment_id"] in shown, newer["payment_id"] in shown) == (False, True)
    assert "among the newest 1." in shown
    assert page_of(older) in found(owner, "inv-1")
