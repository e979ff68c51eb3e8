"""Staff create and rename merchants in the console, and their page says what is missing."""

import io
import re
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.test import Client

from core import clock
from core.console import admin_lists
from merchants import services
from merchants.models import ApiKey, LateMoneyPolicy, Merchant
from tests.concurrency import run_concurrently
from tests.conftest import Shop, open_shop
from tests.console.people.test_confirmations import make_stale
from tests.reconciliation.builders import staff_client
from tests.staff_acts import REASON, acts_of_staff, run_act, send_act
from tests.webhooks.builders import make_endpoint

CREATE = "/admin/merchants/merchant/do/create/"
FORM = {"name": "Khao Soi", "mode": "live", "late_money": "review", "reason": REASON}


@pytest.fixture
def malee(db: None) -> Client:
    return staff_client("malee", "view_merchant", "create_merchant", "rename_merchant")


def create(client: Client, **changes: str) -> Any:
    return client.post(CREATE, FORM | {"token": str(uuid4())} | changes, follow=True)


def page_of(client: Client, merchant: Merchant) -> str:
    path = f"/admin/merchants/merchant/{quote(merchant.pk)}/change/"
    return re.sub(r"\s+", " ", client.get(path).content.decode())


@pytest.mark.slow
def test_list_leads_to_the_form_of_a_new_merchant(malee: Client) -> None:
    assert CREATE in malee.get("/admin/merchants/merchant/").content.decode()
    assert "It can do nothing before it has a key." in malee.get(CREATE).content.decode()
    viewer = staff_client("somsri", "view_merchant")
    assert CREATE not in viewer.get("/admin/merchants/merchant/").content.decode()


def test_staff_create_a_live_merchant_without_a_key(malee: Client) -> None:
    answer = create(malee, late_money="accept")
    made = Merchant.objects.get()
    assert answer.redirect_chain == [(f"/admin/merchants/merchant/{quote(made.pk)}/change/", 302)]
    assert (made.name, made.mode, made.late_money, made.bank) == ("Khao Soi", "live", "accept", "")
    assert not ApiKey.objects.exists()
    record = acts_of_staff().get()
    assert (record.act, record.object_id, record.reason) == ("merchant_created", made.pk, REASON)
    assert record.after["name"] == "Khao Soi"


def test_staff_create_a_test_merchant_at_the_sandbox_bank(malee: Client) -> None:
    create(malee, mode="test")
    made = Merchant.objects.get()
    assert (made.mode, made.bank, len(made.biller_id)) == ("test", "sandbox", 15)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"name": ""}, "This field is required."),
        ({"name": "  "}, "This field is required."),
        ({"name": "x" * 141}, "at most 140 characters"),
        ({"name": "two\nlines"}, "a character that cannot be printed"),
        ({"name": "nul\0"}, "Null characters are not allowed."),
        ({"mode": "sandbox"}, "Select a valid choice."),
        ({"mode": ""}, "This field is required."),
        ({"late_money": "x"}, "Select a valid choice."),
        ({"reason": " "}, "This field is required."),
        ({"token": "x"}, "Open the page again."),
    ],
)
def test_wrong_values_create_no_merchant(malee: Client, changes: dict[str, str], complaint: str) -> None:
    answer = create(malee, **changes)
    assert answer.status_code == 200
    assert complaint in answer.content.decode()
    assert not Merchant.objects.exists()
    assert not acts_of_staff().exists()


@pytest.mark.slow
def test_same_form_twice_creates_one_merchant_and_leads_to_it(malee: Client) -> None:
    token = str(uuid4())
    first, second = (create(malee, token=token) for _ in range(2))
    assert first.redirect_chain == second.redirect_chain
    assert "This was done already" in second.content.decode()
    assert Merchant.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_double_click_creates_one_merchant() -> None:
    cookies, token = staff_client("malee", "view_merchant", "create_merchant").cookies, str(uuid4())

    def click() -> int:
        client = Client()
        client.cookies = cookies
        return int(create(client, token=token).status_code)

    assert run_concurrently(*[click] * 4) == [200] * 4
    assert Merchant.objects.count() == 1
    assert acts_of_staff().count() == 1


@pytest.mark.parametrize("permissions", [("view_merchant",), ("create_merchant",)])
def test_new_merchant_needs_the_permission(db: None, permissions: tuple[str, ...]) -> None:
    client = staff_client("somsri", *permissions)
    assert client.get(CREATE).status_code == 403
    assert create(client).status_code == 403
    assert not Merchant.objects.exists()


def test_unknown_act_of_the_list_is_not_found(malee: Client) -> None:
    assert malee.get("/admin/merchants/merchant/do/nothing/").status_code == 404


def test_command_creates_a_merchant_with_the_policy_for_late_money(db: None) -> None:
    call_command("create_merchant", name="Khao Soi", mode="live", late_money="accept", stdout=io.StringIO())
    assert Merchant.objects.get().late_money == LateMoneyPolicy.ACCEPT
    with pytest.raises(CommandError, match="--name"):
        call_command("create_merchant", name="two\nlines", mode="live")


# --- the name -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_staff_rename_a_merchant(shop: Shop, malee: Client) -> None:
    run_act(malee, Merchant, shop.merchant.pk, "rename", name=" Somtam House 2 ")
    assert Merchant.objects.get().name == "Somtam House 2"
    record = acts_of_staff().get()
    assert (record.act, record.reason) == ("merchant_renamed", REASON)
    assert (record.before, record.after) == ({"name": "Somtam House"}, {"name": "Somtam House 2"})


def test_name_that_payers_see_needs_a_recent_proof(shop: Shop, malee: Client) -> None:
    answer: Any = send_act(make_stale(malee), Merchant, shop.merchant.pk, "rename", name="Evil Noodles")
    assert answer.redirect_chain[-1][0].startswith("/admin/confirm/")
    assert Merchant.objects.get().name == "Somtam House"


@pytest.mark.parametrize("name", ["", "x" * 141, "right\x1bleft"])
def test_wrong_name_is_refused(shop: Shop, malee: Client, name: str) -> None:
    assert "errorlist" in run_act(malee, Merchant, shop.merchant.pk, "rename", name=name)
    assert Merchant.objects.get().name == "Somtam House"


def test_service_refuses_a_name_that_cannot_be_printed(shop: Shop) -> None:
    with pytest.raises(ValidationError) as refused:
        services.rename_merchant(merchant_id=shop.merchant.pk, name="nul\0")
    assert list(refused.value.message_dict) == ["name"]


# --- the page -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_page_of_a_new_live_merchant_says_what_to_do_next(admin_client: Client) -> None:
    create(admin_client)
    made = Merchant.objects.get()
    page = page_of(admin_client, made)
    act = f"/admin/merchants/merchant/{quote(made.pk)}/do"
    assert "What to do next" in page
    assert "It is not connected to a bank" in page
    assert f"{act}/connect-scb/" in page and "Connect to Siam Commercial Bank" in page
    assert "It has no valid key" in page and f"{act}/issue-key/" in page
    assert "POST /v1/webhooks" in page


@pytest.mark.slow
def test_page_of_a_merchant_that_is_set_up_asks_for_nothing(shop: Shop, admin_client: Client) -> None:
    make_endpoint(shop)
    page = page_of(admin_client, shop.merchant)
    assert "What to do next" not in page
    assert "https://" in page
    assert "0.00 THB" in page


@pytest.mark.slow
def test_page_shows_keys_with_their_state_and_acts(shop: Shop, admin_client: Client) -> None:
    revoked = ApiKey.objects.get()
    services.revoke_key(key_id=revoked.pk, now=clock.now())
    used, secret = services.issue_key(merchant=shop.merchant, now=clock.now(), scopes=["payments:read"])
    Shop(shop.merchant, secret, shop.http).get("/v1/payments")
    keys = page_of(admin_client, shop.merchant).split('id="keys"')[1].split("</section>")[0]
    shown, ended = re.findall(r"<tr>.*?</tr>", keys.split("<tbody>")[1])
    assert used.public_id in shown and "active" in shown and "payments:read" in shown
    assert "/do/roll/" in shown and "/do/revoke/" in shown and "never" not in shown
    assert revoked.public_id in ended and "revoked" in ended and "/do/" not in ended


@pytest.mark.slow
def test_links_of_the_page_show_rows_of_this_merchant_only(shop: Shop, admin_client: Client) -> None:
    code, rival = shop.qr_code(), open_shop("Rival")
    others = rival.qr_code()
    links = page_of(admin_client, shop.merchant).split('id="lists"')[1].split("</section>")[0]
    for address in re.findall(r'href="([^"]+)"', links):
        page = admin_client.get(address.replace("&amp;", "&"))
        assert page.status_code == 200, address
        assert others["payment_id"] not in page.content.decode()
        assert rival.merchant.name not in page.content.decode().replace("Rival (test)</option>", "")
    payments = admin_client.get(f"/admin/payments/payment/?merchant={shop.merchant.pk}")
    assert code["payment_id"] in payments.content.decode()


@pytest.mark.slow
def test_links_of_the_page_show_payments_older_than_the_newest_of_all(
    shop: Shop, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_lists, "FILTERED_ROWS", 2)
    old, rival = shop.qr_code()["payment_id"], open_shop("Rival")
    for _ in range(3):
        rival.qr_code()
    links = page_of(admin_client, shop.merchant).split('id="lists"')[1].split("</section>")[0]
    [address] = re.findall(r'href="(/admin/payments/[^"]+)"', links)
    shown = admin_client.get(address.replace("&amp;", "&")).content.decode()
    assert old in shown
    assert "the newest 2 rows" not in shown


def test_page_shows_only_what_its_reader_may_see(shop: Shop) -> None:
    page = page_of(staff_client("somsri", "view_merchant"), shop.merchant)
    for part in ("keys", "endpoints", "balance", "payouts"):
        assert f'id="{part}"' not in page
    assert "/do/" not in page


@pytest.mark.slow
def test_merchants_of_equal_names_are_allowed(malee: Client, shop: Shop) -> None:
    create(malee, name="Somtam House")
    assert Merchant.objects.filter(name="Somtam House").count() == 2


def test_person_without_a_view_permission_sees_no_page(shop: Shop) -> None:
    user = User.objects.create_user("prasit", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="create_merchant"))
    client = Client()
    client.force_login(user)
    assert client.get(f"/admin/merchants/merchant/{quote(shop.merchant.pk)}/change/").status_code == 403
