"""Staff connect a live merchant to its bank in the console. Secrets are stored sealed and never shown."""

import re
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.utils import quote
from django.test import Client

import banks
from core.database import rows
from merchants import bank_connections
from merchants.models import BankConnection, Merchant
from tests.banks import fake_bbl
from tests.concurrency import run_concurrently
from tests.conftest import Shop, open_shop
from tests.console.people.test_confirmations import asked, confirm, make_stale
from tests.merchants.connection_configs import BBL_FORM, BILLER_ID, SCB_FORM, SECRET
from tests.reconciliation.builders import staff_client
from tests.staff_acts import REASON, acts_of_staff, run_act, send_act

pytestmark = pytest.mark.slow

PERMISSIONS = ("view_merchant", "view_bankconnection", "connect_bank")
ADDRESS = re.compile(r"/banks/(\w+)/notifications/(bep_[0-9A-Za-z]{43})")


@pytest.fixture
def live(db: None) -> Shop:
    return open_shop("Khao Soi", mode="live")


@pytest.fixture
def malee(db: None) -> Client:
    return staff_client("malee", *PERMISSIONS)


def act(client: Client, shop: Shop, slug: str, form: dict[str, str]) -> str:
    return unescape(run_act(client, Merchant, shop.merchant.pk, slug, **form))


def connect(client: Client, shop: Shop, **changes: str) -> str:
    """Connect to SCB, and return the secret of the shown address."""
    page = act(client, shop, "connect-scb", SCB_FORM | changes)
    [(_bank, secret)] = set(ADDRESS.findall(page))
    return str(secret)


def renew(client: Client, shop: Shop, **changes: str) -> str:
    kept = {"secret_application_key": "", "secret_application_secret": ""}
    return act(client, shop, "renew-scb", SCB_FORM | kept | changes)


def credentials(shop: Shop) -> dict[str, str]:
    found = bank_connections.credentials_of(shop.merchant.pk, shop.merchant.bank_connections.get().bank)
    assert found is not None
    return dict(found.credentials)


def form_page(client: Client, shop: Shop, slug: str) -> str:
    answer = client.get(f"/admin/merchants/merchant/{quote(shop.merchant.pk)}/do/{slug}/")
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.parametrize("bank", sorted(banks.LIVE_BANKS))
def test_form_has_exactly_the_credentials_of_the_adapter(live: Shop, malee: Client, bank: str) -> None:
    page = form_page(malee, live, f"connect-{bank}")
    declared = {
        f"{'secret' if each.is_secret else 'credential'}_{each.name}"
        for each in banks.LIVE_BANKS[bank].credential_fields
    }
    assert set(re.findall(r'name="((?:secret|credential)_\w+)"', page)) == declared
    assert "renew_address" not in page
    for secret in re.findall(r'<input[^>]*name="secret_[^>]*>', page):
        assert 'type="password"' in secret


def test_staff_connect_a_bank_and_see_its_address_once(live: Shop, malee: Client) -> None:
    answer = send_act(malee, Merchant, live.merchant.pk, "connect-scb", **SCB_FORM)
    assert "no-store" in answer.headers["Cache-Control"]
    [(bank, secret)] = set(ADDRESS.findall(answer.content.decode()))
    connection = bank_connections.find_by_secret(bank, secret)
    assert (connection.merchant_id, connection.callers) == (
        live.merchant.pk,
        ["203.0.113.0/24", "198.51.100.7/32"],
    )
    assert credentials(live)["application_secret"] == SECRET
    merchant = Merchant.objects.get()
    assert (merchant.bank, merchant.biller_id, merchant.reference2, merchant.reference3) == (
        "scb",
        BILLER_ID,
        "SHOP7",
        "PTF",
    )
    assert live.qr_code()["qr_data"]
    page = malee.get(f"/admin/merchants/merchant/{quote(live.merchant.pk)}/change/").content.decode()
    assert "application_secret: set" in page
    assert REASON in page.partition('id="staff-acts"')[2]
    assert secret not in page and SECRET not in page


def test_connection_is_recorded_without_secrets(live: Shop, malee: Client) -> None:
    secret = connect(malee, live)
    record = acts_of_staff().get()
    connection = live.merchant.bank_connections.get()
    assert (record.act, record.object_id, record.reason) == ("bank_connected", str(connection.pk), REASON)
    written = str(list(acts_of_staff().values()))
    assert SECRET not in written and secret not in written


def test_staff_connect_a_bank_with_keys_of_several_lines(live: Shop, malee: Client) -> None:
    page = act(malee, live, "connect-bbl", BBL_FORM)
    assert ADDRESS.search(page)
    assert credentials(live)["private_key"] == fake_bbl.credentials()["private_key"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"biller_id": "0107"}, "The bank gives 15 digits."),
        ({"biller_id": ""}, "This field is required."),
        ({"reference2": "shop7"}, "Up to 20 capital letters and digits."),
        ({"reference3": ""}, "This field is required."),
        ({"secret_application_key": ""}, "This field is required."),
        ({"secret_application_secret": "two words"}, "The value must have 1 to 500 printable characters"),
        ({"credential_api_url": "http://scb.example"}, "The value must begin with https://."),
        ({"credential_api_url": "https://evil.example"}, "The value must be an address of partners.scb"),
        ({"callers": "scb.example"}, "scb.example is not a network"),
        ({"reason": ""}, "This field is required."),
    ],
)
def test_wrong_value_is_explained_at_its_field(
    live: Shop, malee: Client, changes: dict[str, str], complaint: str
) -> None:
    page = act(malee, live, "connect-scb", SCB_FORM | changes)
    [name] = changes
    field = re.search(rf'<p><ul class="errorlist"[^>]*>((?:(?!</ul>).)*)</ul><label for="id_{name}"', page)
    assert field is not None and complaint in field[1]
    assert SECRET not in page
    assert not BankConnection.objects.exists()
    assert Merchant.objects.get().bank == ""


def test_private_key_does_not_come_back_after_an_error(live: Shop, malee: Client) -> None:
    page = act(malee, live, "connect-bbl", BBL_FORM | {"biller_id": "1"})
    assert "PRIVATE KEY" not in page
    assert "BEGIN PUBLIC KEY" in page


def test_biller_id_of_another_merchant_is_refused(live: Shop, malee: Client) -> None:
    connect(malee, live)
    page = act(malee, open_shop("Copy", mode="live"), "connect-scb", SCB_FORM)
    assert "Another merchant has this biller id at this bank." in page


def test_test_merchant_is_not_connected(shop: Shop, malee: Client) -> None:
    assert "Test merchants are served by the sandbox bank." in act(malee, shop, "connect-scb", SCB_FORM)
    page = f"/admin/merchants/merchant/{quote(shop.merchant.pk)}"
    assert "/do/connect" not in malee.get(f"{page}/change/").content.decode()
    assert malee.get(f"{page}/do/connect-scb/").status_code == 302


# --- renewal --------------------------------------------------------------------------------------------


def test_renewal_shows_all_but_secrets(live: Shop, malee: Client) -> None:
    connect(malee, live)
    page = form_page(malee, live, "renew-scb")
    for shown in (BILLER_ID, "SHOP7", "PTF", "203.0.113.0/24", "https://api.partners.scb/partners"):
        assert shown in page
    assert SECRET not in page and "l7f329b707a0714f" not in page
    assert "Leave it empty to keep the stored one." in page


def test_renewal_keeps_secrets_that_are_left_empty(live: Shop, malee: Client) -> None:
    address = connect(malee, live)
    page = renew(malee, live, reference2="SHOP8", secret_application_key="new-key")
    assert "Renew the connection to Siam Commercial Bank: done." in page and not ADDRESS.search(page)
    assert credentials(live) == {
        "application_key": "new-key",
        "application_secret": SECRET,
        "api_url": "https://api.partners.scb/partners",
    }
    assert Merchant.objects.get().reference2 == "SHOP8"
    assert bank_connections.find_by_secret("scb", address)


def test_renewal_makes_a_new_address_if_asked(live: Shop, malee: Client) -> None:
    old = connect(malee, live)
    [(bank, new)] = set(ADDRESS.findall(renew(malee, live, renew_address="on")))
    assert bank_connections.find_by_secret(bank, new)
    with pytest.raises(banks.UnknownBank):
        bank_connections.find_by_secret(bank, old)


def test_stored_secret_is_not_sent_to_another_address_of_the_api(live: Shop, malee: Client) -> None:
    connect(malee, live)
    page = renew(malee, live, credential_api_url="https://old.partners.scb")
    assert page.count("Enter it again, because the address of the API is another one.") == 2
    assert credentials(live)["api_url"] == "https://api.partners.scb/partners"
    renew(
        malee,
        live,
        credential_api_url="https://new.partners.scb",
        secret_application_key="new-key",
        secret_application_secret="new-secret",
    )
    assert credentials(live)["application_secret"] == "new-secret"


def test_service_keeps_no_secret_for_another_address_or_bank(live: Shop, malee: Client) -> None:
    connect(malee, live)
    connection = BankConnection.objects.get()
    for bank, given in (("scb", {"api_url": "https://evil.example"}), ("bbl", {})):
        config = bank_connections.ConnectionConfig(bank=bank, biller_id=BILLER_ID, credentials=given)
        assert bank_connections.kept_secrets(connection, config) == {}


def test_secret_typed_before_an_error_must_be_typed_again(live: Shop, malee: Client) -> None:
    """An empty field would keep the old secret, although a new one was typed."""
    connect(malee, live)
    page = renew(malee, live, secret_application_secret="new-secret", biller_id="1")
    assert "new-secret" not in page
    dropped = re.search(r'name="dropped" value="([^"]*)"', page)
    assert dropped is not None and dropped[1] == "secret_application_secret"
    assert "This field is required." in renew(malee, live, dropped=dropped[1])
    assert credentials(live)["application_secret"] == SECRET
    renew(malee, live, dropped=dropped[1], secret_application_secret="new-secret")
    assert credentials(live)["application_secret"] == "new-secret"


def test_secret_waits_for_the_answer_to_the_question(live: Shop, malee: Client) -> None:
    connect(malee, live)
    url = f"/admin/merchants/merchant/{quote(live.merchant.pk)}/do/renew-scb/"
    form: dict[str, Any] = SCB_FORM | {"reason": REASON, "token": str(uuid4())}
    question = make_stale(malee).post(url, form | {"secret_application_secret": "new-secret"})
    assert asked(question)
    assert "new-secret" not in malee.get(question.headers["Location"]).content.decode()
    assert credentials(live)["application_secret"] == SECRET
    confirm(malee, question)
    assert credentials(live)["application_secret"] == "new-secret"


def test_connection_that_cannot_be_read_is_renewed_with_all_secrets(live: Shop, malee: Client) -> None:
    connect(malee, live)
    rows.run("UPDATE merchants_bankconnection SET credentials_sealed = 'sealed:x'", [])
    page = malee.get(f"/admin/merchants/merchant/{quote(live.merchant.pk)}/change/").content.decode()
    assert "They cannot be read: renew the connection." in page
    assert "This field is required." in renew(malee, live)
    act(malee, live, "renew-scb", SCB_FORM)
    assert credentials(live)["application_secret"] == SECRET


def test_merchant_with_codes_keeps_its_biller_id(live: Shop, malee: Client) -> None:
    connect(malee, live)
    live.qr_code()
    page = renew(malee, live, biller_id="010753600037454")
    assert "so it keeps its bank and biller id" in page
    assert Merchant.objects.get().biller_id == BILLER_ID


# --- rights and double clicks ---------------------------------------------------------------------------


def test_connection_needs_its_permission(live: Shop) -> None:
    client = staff_client("somsri", "view_merchant", "issue_key", "set_late_money")
    answer = send_act(client, Merchant, live.merchant.pk, "connect-scb", **SCB_FORM)
    assert answer.status_code == 403
    assert not BankConnection.objects.exists()


def test_connection_needs_a_confirmation(live: Shop, malee: Client) -> None:
    make_stale(malee)
    assert asked(malee.get(f"/admin/merchants/merchant/{quote(live.merchant.pk)}/do/connect-scb/"))


@pytest.mark.django_db(transaction=True)
def test_double_click_connects_once_and_one_answer_has_the_address() -> None:
    live = open_shop("Khao Soi", mode="live")
    cookies, token = staff_client("malee", *PERMISSIONS).cookies, str(uuid4())

    def click() -> str:
        client = Client()
        client.cookies = cookies
        return act(client, live, "connect-scb", SCB_FORM | {"token": token})

    pages = run_concurrently(*[click] * 4)
    assert sum(ADDRESS.search(page) is not None for page in pages) == 1
    assert acts_of_staff().count() == 1
