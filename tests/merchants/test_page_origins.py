"""The sites of a shop: which texts are origins, who may set them, what the payment page does with them."""

import io
from typing import Any
from urllib.parse import quote

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client

from merchants import page_origins, services
from merchants.models import MAX_ORIGINS, Merchant
from tests.conftest import Shop
from tests.reconciliation.builders import staff_client
from tests.staff_acts import REASON, acts_of_staff, run_act

SITE = "https://shop.example"


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        (SITE, SITE),
        (" HTTPS://Shop.Example/ ", SITE),
        ("https://shop.example:8443", "https://shop.example:8443"),
        ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
    ],
)
def test_origin_is_normalized(text: str, origin: str) -> None:
    assert page_origins.parse([text, text], is_live=False) == [origin]


def test_other_texts_are_refused() -> None:
    for text in [
        "",
        "shop.example",
        "https://",
        "https://shop.example/path",
        "https://a b",
        "https://a;b",
        "https://a,b",
        "https://*.example",
        "ftp://shop.example",
        "javascript:alert(1)",
        "https://me@shop.example",
        "https://shop.example?x",
        "https://-a",
        "https://ร้าน.example",
        "https://" + "a" * 260,
        "'none'",
    ]:
        with pytest.raises(ValueError, match="is not a site such as"):
            page_origins.parse([text], is_live=False)


def test_site_of_a_live_merchant_has_tls() -> None:
    with pytest.raises(ValueError, match="begins with https://"):
        page_origins.parse(["http://shop.example"], is_live=True)


def test_sites_are_few(shop: Shop) -> None:
    many = [f"https://shop{number}.example" for number in range(MAX_ORIGINS + 1)]
    with pytest.raises(ValueError, match="At most 10 sites"):
        services.set_page_origins(shop.merchant.pk, many)
    with pytest.raises(IntegrityError), transaction.atomic():
        Merchant.objects.update(page_origins=many)


def page_of(shop: Shop, return_url: str | None = None) -> Any:
    query = "?lang=en" + ("" if return_url is None else "&return_url=" + quote(return_url, safe=""))
    return Client().get(f"/pay/{shop.qr_code()['qr_code_id']}{query}")


def test_only_sites_of_the_shop_may_frame_the_page(shop: Shop, other_shop: Shop) -> None:
    services.set_page_origins(shop.merchant.pk, [SITE, "https://till.example"])
    assert (
        page_of(shop)
        .headers["Content-Security-Policy"]
        .endswith("frame-ancestors https://shop.example https://till.example")
    )
    assert page_of(other_shop).headers["Content-Security-Policy"].endswith("frame-ancestors 'none'")


@pytest.mark.parametrize(
    ("url", "is_linked"),
    [
        (f"{SITE}/orders/7?a=1#b", True),
        ("HTTPS://SHOP.example/", True),
        ("https://shop.example.evil.example/", False),
        ("https://shop.example@evil.example/", False),
        ("https://shop.example:444/", False),
        ("http://shop.example/", False),
        ("//shop.example/", False),
        ("javascript:alert(1)//https://shop.example", False),
        ("https://shop.example\\@evil.example/", False),
        ("https://shop.example/\n", False),
        ("https://[shop.example/", False),
        (f"{SITE}/" + "a" * 2000, False),
        ("", False),
    ],
)
def test_page_links_back_to_sites_of_the_shop_only(shop: Shop, url: str, is_linked: bool) -> None:
    services.set_page_origins(shop.merchant.pk, [SITE])
    answer = page_of(shop, url)
    assert answer.status_code == 200
    assert ("Back to the shop" in answer.content.decode()) is is_linked


def test_language_links_keep_the_way_back(shop: Shop) -> None:
    services.set_page_origins(shop.merchant.pk, [SITE])
    page = page_of(shop, f"{SITE}/7").content.decode()
    assert "?lang=th&amp;return_url=https%3A%2F%2Fshop.example%2F7" in page


@pytest.mark.slow
def test_staff_set_the_sites(shop: Shop) -> None:
    malee = staff_client("malee", "view_merchant", "set_page_origins")
    page = run_act(malee, Merchant, shop.merchant.pk, "page-origins", origins="shop.example")
    assert "shop.example is not a site such as https://shop.example" in page
    run_act(malee, Merchant, shop.merchant.pk, "page-origins", origins=f"{SITE}\n{SITE}/")
    assert Merchant.objects.get().page_origins == [SITE]
    record = acts_of_staff().get()
    assert (record.act, record.reason) == ("page_origins_changed", REASON)
    assert (record.before, record.after) == ({"page_origins": []}, {"page_origins": [SITE]})


def test_command_sets_the_sites(shop: Shop) -> None:
    call_command("page_origins", shop.merchant.pk, SITE, stdout=io.StringIO())
    assert Merchant.objects.get().page_origins == [SITE]
    call_command("page_origins", shop.merchant.pk, stdout=io.StringIO())
    assert Merchant.objects.get().page_origins == []
    with pytest.raises(CommandError, match="is not a site"):
        call_command("page_origins", shop.merchant.pk, "nonsense")
