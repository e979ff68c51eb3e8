"""Staff connect a second bank, and see which bank has the new codes of a merchant."""

from html import unescape

import pytest
from django.contrib.admin.utils import quote
from django.test import Client

from core import clock
from merchants import bank_connections
from merchants.models import Merchant
from operations.metrics import money_in
from payments.fee_terms import FeeTerms
from tests.conftest import Shop, open_shop
from tests.merchants.connection_configs import BBL_FORM, SCB_CONFIG
from tests.reconciliation.builders import staff_client
from tests.staff_acts import acts_of_staff, run_act

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
SILENT = "Siam Commercial Bank does not answer: new codes go to Bangkok Bank until it answers again."


@pytest.fixture
def live(db: None) -> Shop:
    shop = open_shop("Khao Soi", mode="live")
    bank_connections.connect(merchant_id=shop.merchant.pk, config=SCB_CONFIG, now=clock.now())
    return shop


@pytest.fixture
def malee(db: None) -> Client:
    rights = ("view_merchant", "view_bankconnection", "connect_bank", "test_connection", "set_fees")
    return staff_client("malee", *rights, "view_feeterms")


def act(client: Client, shop: Shop, slug: str, **form: str) -> str:
    return unescape(run_act(client, Merchant, shop.merchant.pk, slug, **form))


def page_of(client: Client, shop: Shop) -> str:
    answer = client.get(f"/admin/merchants/merchant/{quote(shop.merchant.pk)}/change/")
    return unescape(answer.content.decode())


def test_staff_connect_and_renew_a_standby(live: Shop, malee: Client) -> None:
    page = page_of(malee, live)
    assert "Connect Bangkok Bank as the stand-by" in page
    assert "Connect Siam Commercial Bank" not in page and "Test the connection to the stand-by" not in page
    assert "/banks/bbl/notifications/bep_" in act(malee, live, "standby-bbl", **BBL_FORM)
    live.merchant.refresh_from_db()
    assert (live.merchant.bank, live.merchant.standby_bank) == ("scb", "bbl")
    assert acts_of_staff().get().act == "bank_connected"
    page = page_of(malee, live)
    assert "as the stand-by" not in page and "Test the connection to the stand-by" in page
    assert "carry this biller id" in page and "go to the other bank" in page
    act(malee, live, "renew-bbl", **BBL_FORM | {"reference2": "SHOP7"})
    live.merchant.refresh_from_db()
    assert (live.merchant.standby_reference2, live.merchant.reference2) == ("SHOP7", SCB_CONFIG.reference2)


def test_fees_of_the_standby_are_its_own(live: Shop, malee: Client) -> None:
    form = {"starts_on": "2099-01-01", "fixed": "1", "rate": "0", "is_of_standby": "on"}
    act(malee, live, "set-fees", **form)
    assert not FeeTerms.objects.get().is_of_standby, "there is none"
    act(malee, live, "standby-bbl", **BBL_FORM)
    act(malee, live, "set-fees", **form)
    assert FeeTerms.objects.filter(is_of_standby=True).count() == 1
    assert "(stand-by)" in page_of(malee, live)


def test_pages_and_metrics_say_which_bank_has_the_new_codes(live: Shop, malee: Client) -> None:
    act(malee, live, "standby-bbl", **BBL_FORM)
    home = "/admin/?mode=live"
    assert SILENT not in page_of(malee, live)
    assert "Khao Soi" not in malee.get(home).content.decode()
    bank_connections.move_codes(live.merchant.pk, to_standby=True, now=clock.now())
    assert SILENT in page_of(malee, live)
    shown = malee.get(home).content.decode()
    assert "New codes at the stand-by" in shown and "Khao Soi" in shown
    listed = malee.get("/admin/merchants/merchant/?mode=live&uses_standby__exact=1").content.decode()
    assert "Khao Soi" in listed
    [found] = [each for each in money_in.read(clock.now()) if each.name.endswith("merchants_at_standby")]
    assert {each.labels["bank"]: each.value for each in found.samples} == {"scb": 1, "bbl": 0}
