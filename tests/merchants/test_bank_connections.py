"""Bank connections: a command creates them, the notification address finds them, and secrets stay hidden."""

import io
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command, load_command_class
from django.db import IntegrityError, transaction
from django.test import Client
from pytest_django import Settings

import banks
from banks.bbl import Bbl
from banks.scb import Scb
from core import clock, vault
from core.database import rows
from core.thai import thaiqr
from merchants import bank_connections
from merchants.bank_connections import ConnectionConfig
from merchants.errors import CallerNotAllowed, MerchantNotFound
from merchants.models import BankConnection, LateMoneyPolicy, Merchant
from tests.banks import fake_bbl
from tests.conftest import Shop, open_shop
from tests.merchants.connection_configs import BBL_CONFIG, BILLER_ID, SCB_CONFIG, SCB_CREDENTIALS, SECRET
from tests.staff_acts import acts_of_staff, run_act, send_act


@pytest.fixture
def live(db: None) -> Shop:
    return open_shop("Khao Soi", mode="live")


def connect(
    shop: Shop, config: ConnectionConfig = SCB_CONFIG, *, renew_address: bool = False
) -> tuple[BankConnection, str | None]:
    return bank_connections.connect(
        merchant_id=shop.merchant.id, config=config, now=clock.now(), renew_address=renew_address
    )


def address_secret(shop: Shop, config: ConnectionConfig = SCB_CONFIG) -> str:
    _, secret = connect(shop, config)
    assert secret is not None
    return secret


def command(shop: Shop, *more: str, file: str = "-") -> str:
    out = io.StringIO()
    arguments = [shop.merchant.id, "--bank", "scb", "--biller-id", BILLER_ID, "--credentials", file, *more]
    call_command("connect_bank", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "credentials.json"
    path.write_text(json.dumps(SCB_CREDENTIALS))
    return str(path)


def test_connected_merchant_creates_qr_codes_with_the_own_biller_id(live: Shop) -> None:
    connect(live)
    code = thaiqr.parse(live.qr_code()["qr_data"])
    assert (code.biller_id, code.reference2, code.reference3) == (BILLER_ID, "SHOP7", "PTF")
    assert Merchant.objects.get(pk=live.merchant.id).bank == "scb"


def test_decrypted_connection_has_credentials_for_adapter(live: Shop) -> None:
    connect(live)
    connection = bank_connections.credentials_of(live.merchant.id, "scb")
    assert connection is not None
    assert connection.biller_id == BILLER_ID
    assert connection.credentials == SCB_CREDENTIALS | {"api_url": "https://api.partners.scb/partners"}
    assert isinstance(banks.get("scb", connection), Scb)
    assert bank_connections.credentials_of(open_shop("Nobody").merchant.id, "scb") is None


def test_bank_connection_table_contains_no_plain_secret(live: Shop) -> None:
    secret = address_secret(live)
    (row,) = BankConnection.objects.values()
    assert SECRET not in str(row)
    assert secret not in str(row)
    assert row["credentials_sealed"].startswith(vault.PREFIX)


def test_connection_is_found_by_bank_and_secret(live: Shop) -> None:
    assert bank_connections.find_by_secret("scb", address_secret(live)).merchant_id == live.merchant.id


@pytest.mark.parametrize("wrong", ["", "bep_", "x", "bep_" + "0" * 43, "ประตู", "bep_" + "๐" * 43, "\x00"])
def test_wrong_notification_secret_is_refused(live: Shop, wrong: str) -> None:
    connect(live)
    with pytest.raises(banks.UnknownBank):
        bank_connections.find_by_secret("scb", wrong)


def test_notification_secret_of_another_bank_is_refused(live: Shop) -> None:
    secret = address_secret(live)
    for bank in ("bbl", "sandbox", ""):
        with pytest.raises(banks.UnknownBank):
            bank_connections.find_by_secret(bank, secret)


def test_reconnecting_replaces_credentials_and_keeps_the_notification_url(live: Shop) -> None:
    secret = address_secret(live)
    _, again = connect(
        live,
        ConnectionConfig(
            **vars_of(SCB_CONFIG) | {"credentials": SCB_CREDENTIALS | {"application_secret": "new"}}
        ),
    )
    assert again is None
    connection = bank_connections.decrypt(bank_connections.find_by_secret("scb", secret))
    assert connection.credentials["application_secret"] == "new"
    assert BankConnection.objects.count() == 1


def test_renewed_notification_url_replaces_the_old_url(live: Shop) -> None:
    old = address_secret(live)
    _, new = connect(live, renew_address=True)
    assert new is not None
    assert bank_connections.find_by_secret("scb", new).merchant_id == live.merchant.id
    with pytest.raises(banks.UnknownBank):
        bank_connections.find_by_secret("scb", old)


@pytest.mark.slow
def test_change_of_bank_replaces_the_notification_url(live: Shop) -> None:
    old = address_secret(live)
    new = address_secret(live, BBL_CONFIG)
    connection = bank_connections.find_by_secret("bbl", new)
    assert isinstance(banks.get("bbl", bank_connections.decrypt(connection)), Bbl)
    assert connection.merchant.bank == "bbl"
    with pytest.raises(banks.UnknownBank):
        bank_connections.find_by_secret("scb", old)


@pytest.mark.parametrize(
    ("moved", "field"),
    [(BBL_CONFIG, "bank"), (replace(SCB_CONFIG, biller_id="010753600037454"), "biller_id")],
)
def test_merchant_with_qr_codes_cannot_change_bank_or_biller_id(
    live: Shop, moved: ConnectionConfig, field: str
) -> None:
    secret = address_secret(live)
    live.qr_code()
    with pytest.raises(ValidationError, match="open another merchant") as refused:
        connect(live, moved)
    assert list(refused.value.message_dict) == [field]
    connection = bank_connections.find_by_secret("scb", secret)
    assert (connection.bank, connection.merchant.bank, connection.merchant.biller_id) == (
        "scb",
        "scb",
        BILLER_ID,
    )


def test_merchant_with_qr_codes_can_change_other_connection_fields(live: Shop) -> None:
    old = address_secret(live)
    live.qr_code()
    renewed = SCB_CREDENTIALS | {"application_secret": "new"}
    config = replace(SCB_CONFIG, reference2="SHOP8", credentials=renewed, callers=["203.0.113.7"])
    connection, new = connect(live, config, renew_address=True)
    assert new not in (None, old)
    assert (bank_connections.decrypt(connection).credentials["application_secret"], connection.callers) == (
        "new",
        ["203.0.113.7/32"],
    )
    assert thaiqr.parse(live.qr_code()["qr_data"]).reference2 == "SHOP8"


@pytest.mark.parametrize("change", ["bank = 'bbl'", "bank = ''", "biller_id = '010753600037454'"])
def test_database_refuses_to_change_the_bank_of_a_merchant_with_qr_codes(live: Shop, change: str) -> None:
    connect(live)
    live.qr_code()
    attack = f"UPDATE merchants_merchant SET {change}"
    with pytest.raises(IntegrityError, match="keeps its bank"), transaction.atomic():
        rows.run(attack, [])


def vars_of(config: ConnectionConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in ConnectionConfig.__dataclass_fields__}


PEM = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"
SMALL_KEY = (
    rsa.generate_private_key(public_exponent=65537, key_size=1024)
    .public_key()
    .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    .decode()
)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"bank": "kbank"}, "bank"),
        ({"bank": "sandbox"}, "bank"),
        ({"biller_id": "01075360003745"}, "biller_id"),
        ({"biller_id": "๐๑๐๗๕๓๖๐๐๐๓๗๔๕๓"}, "biller_id"),
        ({"reference2": "shop7"}, "reference2"),
        ({"reference3": ""}, "reference3"),
        ({"reference3": "A" * 21}, "reference3"),
        ({"credentials": {}}, "credentials"),
        ({"credentials": {"application_key": "k"}}, "credentials"),
        ({"credentials": SCB_CREDENTIALS | {"application_secret": ""}}, "credentials"),
        ({"credentials": SCB_CREDENTIALS | {"application_secret": 17}}, "credentials"),
        ({"credentials": SCB_CREDENTIALS | {"application_secret": "two words"}}, "credentials"),
        ({"credentials": SCB_CREDENTIALS | {"more": "x"}}, "credentials"),
        ({"credentials": SCB_CREDENTIALS | {"api_url": "http://api.partners.scb"}}, "credentials"),
        ({"credentials": SCB_CREDENTIALS | {"api_url": "http://localhost:1"}}, "credentials"),
        ({"credentials": SCB_CREDENTIALS | {"api_url": "https://user@scb.example"}}, "credentials"),
        ({"credentials": SCB_CREDENTIALS | {"api_url": "https://scb.example:99999"}}, "credentials"),
        ({"credentials": SCB_CREDENTIALS | {"api_url": "https://["}}, "credentials"),
        ({"credentials": SCB_CREDENTIALS | {"api_url": "ftp://scb.example"}}, "credentials"),
        ({"credentials": SCB_CREDENTIALS | {"api_url": "https://evil.example"}}, "credentials"),
        ({"credentials": SCB_CREDENTIALS | {"api_url": "https://evilpartners.scb"}}, "credentials"),
        ({"credentials": SCB_CREDENTIALS | {"api_url": "https://partners.scb.evil.example"}}, "credentials"),
        ({"credentials": SCB_CREDENTIALS | {"api_url": "https://api.bangkokbank.com"}}, "credentials"),
        ({"callers": ["203.0.113.300"]}, "callers"),
        ({"callers": ["203.0.113.7/24"]}, "callers"),
        ({"callers": ["scb.example"]}, "callers"),
        ({"callers": ["203.0.113.7"] * 51}, "callers"),
    ],
)
def test_invalid_connection_config_error_names_the_field(
    live: Shop, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        connect(live, ConnectionConfig(**vars_of(SCB_CONFIG) | changes))
    assert list(refused.value.message_dict) == [field]
    assert SECRET not in str(refused.value)
    assert not BankConnection.objects.exists()
    assert Merchant.objects.get(pk=live.merchant.id).bank == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"bank_public_key": "x"},
        {"bank_public_key": PEM},
        {"bank_public_key": SMALL_KEY},
        {"bank_public_key": fake_bbl.key_pair("bank")[0]},
        {"private_key": fake_bbl.key_pair("bank")[1]},
        {"private_key": "x"},
        {"inquiry_path": "biller"},
        {"void_path": "/biller/../x?y"},
    ],
)
@pytest.mark.slow
def test_invalid_connection_keys_and_paths_are_refused(live: Shop, changes: dict[str, str]) -> None:
    config = ConnectionConfig(**vars_of(BBL_CONFIG) | {"credentials": fake_bbl.credentials() | changes})
    with pytest.raises(ValidationError, match=next(iter(changes))):
        connect(live, config)


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9000", "http://[::1]:9000/bank/", "https://api-sandbox.partners.scb/v1"]
)
def test_bank_url_with_http_is_allowed_on_loopback_only(live: Shop, address: str) -> None:
    connect(
        live,
        ConnectionConfig(**vars_of(SCB_CONFIG) | {"credentials": SCB_CREDENTIALS | {"api_url": address}}),
    )
    connection = bank_connections.credentials_of(live.merchant.id, "scb")
    assert connection is not None
    assert connection.credentials["api_url"] == address.rstrip("/")


def test_setting_allows_another_host_of_the_api(live: Shop, settings: Settings) -> None:
    settings.BANK_API_HOSTS = ["proxy.shop.example"]
    address = "https://proxy.shop.example/scb"
    connect(
        live,
        ConnectionConfig(**vars_of(SCB_CONFIG) | {"credentials": SCB_CREDENTIALS | {"api_url": address}}),
    )
    found = bank_connections.credentials_of(live.merchant.id, "scb")
    assert found is not None and found.credentials["api_url"] == address


def test_test_merchants_stay_with_the_sandbox_bank(shop: Shop) -> None:
    with pytest.raises(ValidationError, match="sandbox"):
        connect(shop)


def test_connecting_an_unknown_merchant_is_refused(db: None) -> None:
    with pytest.raises(MerchantNotFound):
        bank_connections.connect(merchant_id="mch_none", config=SCB_CONFIG, now=clock.now())


@pytest.mark.slow
def test_biller_id_is_unique_per_bank(live: Shop) -> None:
    connect(live)
    other = open_shop("Copy", mode="live")
    with pytest.raises(ValidationError, match="Another merchant"):
        connect(other)
    connect(other, BBL_CONFIG)


@pytest.mark.parametrize(
    ("callers", "address", "is_admitted"),
    [
        ([], "203.0.113.7", True),
        ([], "", True),
        (["203.0.113.0/24"], "203.0.113.7", True),
        (["203.0.113.0/24"], "::ffff:203.0.113.7", True),
        (["203.0.113.0/24", "2001:db8::/32"], "2001:db8::1", True),
        (["203.0.113.7"], "203.0.113.7", True),
        (["203.0.113.7"], "203.0.113.8", False),
        (["203.0.113.0/24"], "2001:db8::1", False),
        (["203.0.113.0/24"], "", False),
        (["203.0.113.0/24"], "unix:", False),
        (["203.0.113.0/24"], "203.0.113.7:4711", False),
    ],
)
def test_notification_from_a_network_that_is_not_configured_is_refused(
    callers: list[str], address: str, is_admitted: bool
) -> None:
    connection = BankConnection(callers=callers)
    if is_admitted:
        bank_connections.check_caller(connection, address)
        return
    with pytest.raises(CallerNotAllowed):
        bank_connections.check_caller(connection, address)


def test_connect_command_prints_the_notification_url_once(live: Shop, file: str, settings: Any) -> None:
    settings.BASE_URL = "https://pay.example"
    printed = json.loads(
        command(live, "--reference3", "PTF", "--callers", "203.0.113.0/24", "--json", file=file)
    )
    url = printed["callback_url"]
    assert url.startswith("https://pay.example/banks/scb/notifications/bep_")
    connection = bank_connections.find_by_secret("scb", url.rpartition("/")[2])
    assert (connection.merchant_id, connection.callers) == (live.merchant.id, ["203.0.113.0/24"])
    assert printed["callers"] == "203.0.113.0/24"
    again = command(live, "--reference3", "PTF", file=file)
    assert "callback_url" not in again
    assert "callers       any" in again
    assert "callback_url" in command(live, "--reference3", "PTF", "--renew-address", file=file)


def test_connect_command_reads_standard_input(live: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(SCB_CREDENTIALS)))
    assert "bep_" in command(live, "--reference3", "PTF")


@pytest.mark.parametrize(
    ("written", "more", "message"),
    [
        ("{", ["--reference3", "PTF"], "--credentials: .* it is not JSON"),
        ("[]", ["--reference3", "PTF"], "application_key"),
        ("{}", ["--reference3", "PTF"], "--credentials: application_key: is missing"),
        (json.dumps(SCB_CREDENTIALS), [], "--reference3: Required"),
        (json.dumps(SCB_CREDENTIALS), ["--reference3", "PTF", "--callers", "x"], "--callers"),
    ],
)
def test_connect_command_refuses_invalid_credentials(
    live: Shop, tmp_path: Path, written: str, more: list[str], message: str
) -> None:
    path = tmp_path / "credentials.json"
    path.write_text(written)
    with pytest.raises(CommandError, match=message) as refused:
        command(live, *more, file=str(path))
    assert SECRET not in str(refused.value)


def test_connect_command_refuses_test_merchant(shop: Shop, file: str) -> None:
    with pytest.raises(CommandError, match=r"^merchant_id: Test merchants"):
        command(shop, "--reference3", "PTF", file=file)


def test_connect_command_help_lists_the_credentials_of_each_bank() -> None:
    help_text = " ".join(
        load_command_class("merchants", "connect_bank").create_parser("", "").format_help().split()
    )
    for bank in banks.LIVE_BANKS.values():
        assert all(need.name in help_text for need in bank.credential_fields)


def test_connect_command_reports_missing_file(live: Shop) -> None:
    with pytest.raises(CommandError, match="No such file"):
        command(live, file="/nowhere/credentials.json")


@pytest.mark.slow
def test_console_shows_connection_without_secrets(live: Shop, admin_client: Client) -> None:
    secret = address_secret(live, BBL_CONFIG)
    listed = admin_client.get("/admin/merchants/bankconnection/")
    shown = admin_client.get(
        f"/admin/merchants/bankconnection/{live.merchant.bank_connections.get().pk}/change/"
    ).content.decode()
    assert listed.status_code == 200
    assert "private_key: set" in shown
    assert "consumer_secret: set" in shown
    assert "inquiry_path: /biller/v1/inquiry" in shown
    assert "BEGIN PRIVATE" not in shown
    assert "consumer-secret" not in shown
    assert secret not in shown


def staff(*permissions: str) -> Client:
    user = User.objects.create_user("malee", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_merchant", *permissions]))
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize(
    ("action", "kept"), [("accept-late-money", "accept"), ("review-late-money", "review")]
)
@pytest.mark.slow
def test_staff_set_late_money_policy(live: Shop, action: str, kept: str) -> None:
    other = LateMoneyPolicy.REVIEW if kept == "accept" else LateMoneyPolicy.ACCEPT
    Merchant.objects.update(late_money=other)
    run_act(staff("set_late_money"), Merchant, live.merchant.id, action)
    assert Merchant.objects.get(pk=live.merchant.id).late_money == kept
    entry = acts_of_staff().get()
    assert (entry.actor, entry.object_id) == ("staff:malee", live.merchant.id)
    assert (entry.before, entry.after) == ({"late_money": other}, {"late_money": kept})


@pytest.mark.slow
def test_view_permission_cannot_set_late_money_policy(live: Shop) -> None:
    assert send_act(staff(), Merchant, live.merchant.id, "accept-late-money").status_code == 403
    assert Merchant.objects.get(pk=live.merchant.id).late_money == "review"


def test_bank_connection_stores_created_at_and_updated_at(live: Shop, noon: datetime) -> None:
    later = noon.replace(hour=9)
    for now in (noon, later):
        bank_connections.connect(merchant_id=live.merchant.id, config=SCB_CONFIG, now=now)
    connection = BankConnection.objects.get()
    assert (connection.created_at, connection.updated_at) == (noon, later)
