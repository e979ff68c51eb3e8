"""A live merchant and its bank: connected by a command, known by a door, shown without secrets."""

import io
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command, load_command_class
from django.db import IntegrityError, transaction
from django.test import Client

import banks
from banks.bbl import Bbl
from banks.scb import Scb
from core import clock, rows, thaiqr
from merchants import links
from merchants.errors import CallerNotAllowed, MerchantNotFound
from merchants.links import Terms
from merchants.models import BankLink, LateMoney, Merchant
from tests.banks import bbl_stand_in
from tests.conftest import Shop, open_shop
from tests.merchants.cast import BBL, BILLER, SCB, SECRET, TERMS


@pytest.fixture
def live(db: None) -> Shop:
    return open_shop("Khao Soi", mode="live")


def connect(shop: Shop, terms: Terms = TERMS, *, renew_door: bool = False) -> tuple[BankLink, str | None]:
    return links.connect(merchant_id=shop.merchant.id, terms=terms, now=clock.now(), renew_door=renew_door)


def door(shop: Shop, terms: Terms = TERMS) -> str:
    _, secret = connect(shop, terms)
    assert secret is not None
    return secret


def command(shop: Shop, *more: str, file: str = "-") -> str:
    out = io.StringIO()
    arguments = [shop.merchant.id, "--bank", "scb", "--biller-id", BILLER, "--credentials", file, *more]
    call_command("connect_bank", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "credentials.json"
    path.write_text(json.dumps(SCB))
    return str(path)


def test_a_connected_merchant_makes_codes_that_its_bank_knows(live: Shop) -> None:
    connect(live)
    code = thaiqr.parse(live.qr_code()["qr_data"])
    assert (code.biller_id, code.reference2, code.reference3) == (BILLER, "SHOP7", "PTF")
    assert Merchant.objects.get(pk=live.merchant.id).bank == "scb"


def test_the_link_opens_to_what_the_adapter_needs(live: Shop) -> None:
    connect(live)
    link = links.of(live.merchant.id)
    assert link is not None
    assert link.biller_id == BILLER
    assert link.credentials == SCB | {"api_url": "https://api.partners.scb/partners"}
    assert isinstance(banks.get("scb", link), Scb)
    assert links.of(open_shop("Nobody").merchant.id) is None


def test_nothing_in_the_table_tells_a_secret(live: Shop) -> None:
    secret = door(live)
    (row,) = BankLink.objects.values()
    assert SECRET not in str(row)
    assert secret not in str(row)
    assert row["credentials_sealed"].startswith("gAAAAA")


def test_a_door_is_found_by_its_bank_and_secret(live: Shop) -> None:
    assert links.by_door("scb", door(live)).merchant_id == live.merchant.id


@pytest.mark.parametrize("wrong", ["", "door_", "x", "door_" + "0" * 43, "ประตู", "door_" + "๐" * 43, "\x00"])
def test_a_wrong_secret_finds_nothing(live: Shop, wrong: str) -> None:
    connect(live)
    with pytest.raises(banks.UnknownBank):
        links.by_door("scb", wrong)


def test_another_bank_does_not_open_the_door(live: Shop) -> None:
    secret = door(live)
    for bank in ("bbl", "sandbox", ""):
        with pytest.raises(banks.UnknownBank):
            links.by_door(bank, secret)


def test_connecting_again_renews_credentials_and_keeps_the_door(live: Shop) -> None:
    secret = door(live)
    _, again = connect(live, Terms(**vars_of(TERMS) | {"credentials": SCB | {"application_secret": "new"}}))
    assert again is None
    link = links.opened(links.by_door("scb", secret))
    assert link.credentials["application_secret"] == "new"
    assert BankLink.objects.count() == 1


def test_a_renewed_door_closes_the_old_one(live: Shop) -> None:
    old = door(live)
    _, new = connect(live, renew_door=True)
    assert new is not None
    assert links.by_door("scb", new).merchant_id == live.merchant.id
    with pytest.raises(banks.UnknownBank):
        links.by_door("scb", old)


def test_a_move_to_another_bank_closes_the_old_door(live: Shop) -> None:
    old = door(live)
    new = door(live, BBL)
    link = links.by_door("bbl", new)
    assert isinstance(banks.get("bbl", links.opened(link)), Bbl)
    assert link.merchant.bank == "bbl"
    with pytest.raises(banks.UnknownBank):
        links.by_door("scb", old)


@pytest.mark.parametrize(
    ("moved", "field"), [(BBL, "bank"), (replace(TERMS, biller_id="010753600037454"), "biller_id")]
)
def test_who_has_made_codes_keeps_bank_and_biller_id(live: Shop, moved: Terms, field: str) -> None:
    secret = door(live)
    live.qr_code()
    with pytest.raises(ValidationError, match="open another merchant") as refused:
        connect(live, moved)
    assert list(refused.value.message_dict) == [field]
    link = links.by_door("scb", secret)
    assert (link.bank, link.merchant.bank, link.merchant.biller_id) == ("scb", "scb", BILLER)


def test_who_has_made_codes_renews_all_the_rest(live: Shop) -> None:
    old = door(live)
    live.qr_code()
    renewed = SCB | {"application_secret": "new"}
    terms = replace(TERMS, reference2="SHOP8", credentials=renewed, callers=["203.0.113.7"])
    link, new = connect(live, terms, renew_door=True)
    assert new not in (None, old)
    assert (links.opened(link).credentials["application_secret"], link.callers) == ("new", ["203.0.113.7/32"])
    assert thaiqr.parse(live.qr_code()["qr_data"]).reference2 == "SHOP8"


@pytest.mark.parametrize("change", ["bank = 'bbl'", "bank = ''", "biller_id = '010753600037454'"])
def test_the_database_keeps_the_bank_of_who_has_made_codes(live: Shop, change: str) -> None:
    connect(live)
    live.qr_code()
    attack = f"UPDATE merchants_merchant SET {change}"
    with pytest.raises(IntegrityError, match="keeps its bank"), transaction.atomic():
        rows.run(attack, [])


def vars_of(terms: Terms) -> dict[str, Any]:
    return {name: getattr(terms, name) for name in Terms.__dataclass_fields__}


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
        ({"credentials": SCB | {"application_secret": ""}}, "credentials"),
        ({"credentials": SCB | {"application_secret": 17}}, "credentials"),
        ({"credentials": SCB | {"application_secret": "two words"}}, "credentials"),
        ({"credentials": SCB | {"more": "x"}}, "credentials"),
        ({"credentials": SCB | {"api_url": "http://api.partners.scb"}}, "credentials"),
        ({"credentials": SCB | {"api_url": "http://localhost:1"}}, "credentials"),
        ({"credentials": SCB | {"api_url": "https://user@scb.example"}}, "credentials"),
        ({"credentials": SCB | {"api_url": "https://scb.example:99999"}}, "credentials"),
        ({"credentials": SCB | {"api_url": "https://["}}, "credentials"),
        ({"credentials": SCB | {"api_url": "ftp://scb.example"}}, "credentials"),
        ({"callers": ["203.0.113.300"]}, "callers"),
        ({"callers": ["203.0.113.7/24"]}, "callers"),
        ({"callers": ["scb.example"]}, "callers"),
        ({"callers": ["203.0.113.7"] * 51}, "callers"),
    ],
)
def test_what_does_not_make_sense_is_refused_by_its_field(
    live: Shop, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        connect(live, Terms(**vars_of(TERMS) | changes))
    assert list(refused.value.message_dict) == [field]
    assert SECRET not in str(refused.value)
    assert not BankLink.objects.exists()
    assert Merchant.objects.get(pk=live.merchant.id).bank == ""


@pytest.mark.parametrize(
    "changes",
    [
        {"bank_public_key": "x"},
        {"bank_public_key": PEM},
        {"bank_public_key": SMALL_KEY},
        {"bank_public_key": bbl_stand_in.key_pair("bank")[0]},
        {"private_key": bbl_stand_in.key_pair("bank")[1]},
        {"private_key": "x"},
        {"inquiry_path": "biller"},
        {"void_path": "/biller/../x?y"},
    ],
)
def test_keys_and_paths_are_tried_before_they_are_kept(live: Shop, changes: dict[str, str]) -> None:
    terms = Terms(**vars_of(BBL) | {"credentials": bbl_stand_in.credentials() | changes})
    with pytest.raises(ValidationError, match=next(iter(changes))):
        connect(live, terms)


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9000", "http://[::1]:9000/bank/", "https://scb.example/v1"]
)
def test_only_this_machine_may_be_asked_without_tls(live: Shop, address: str) -> None:
    connect(live, Terms(**vars_of(TERMS) | {"credentials": SCB | {"api_url": address}}))
    link = links.of(live.merchant.id)
    assert link is not None
    assert link.credentials["api_url"] == address.rstrip("/")


def test_test_merchants_stay_with_the_sandbox_bank(shop: Shop) -> None:
    with pytest.raises(ValidationError, match="sandbox"):
        connect(shop)


def test_a_merchant_that_is_not_there_is_said_so(db: None) -> None:
    with pytest.raises(MerchantNotFound):
        links.connect(merchant_id="mch_none", terms=TERMS, now=clock.now())


def test_a_biller_belongs_to_one_merchant(live: Shop) -> None:
    connect(live)
    other = open_shop("Copy", mode="live")
    with pytest.raises(ValidationError, match="Another merchant"):
        connect(other)
    connect(other, BBL)


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
def test_only_the_networks_of_the_bank_are_admitted(
    callers: list[str], address: str, is_admitted: bool
) -> None:
    link = BankLink(callers=callers)
    if is_admitted:
        links.admit(link, address)
        return
    with pytest.raises(CallerNotAllowed):
        links.admit(link, address)


def test_the_command_prints_the_address_once(live: Shop, file: str, settings: Any) -> None:
    settings.BASE_URL = "https://pay.example"
    printed = json.loads(
        command(live, "--reference3", "PTF", "--callers", "203.0.113.0/24", "--json", file=file)
    )
    url = printed["callback_url"]
    assert url.startswith("https://pay.example/banks/scb/notices/door_")
    link = links.by_door("scb", url.rpartition("/")[2])
    assert (link.merchant_id, link.callers) == (live.merchant.id, ["203.0.113.0/24"])
    assert printed["callers"] == "203.0.113.0/24"
    again = command(live, "--reference3", "PTF", file=file)
    assert "callback_url" not in again
    assert "callers       any" in again
    assert "callback_url" in command(live, "--reference3", "PTF", "--renew-door", file=file)


def test_the_command_reads_standard_input(live: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(SCB)))
    assert "door_" in command(live, "--reference3", "PTF")


@pytest.mark.parametrize(
    ("written", "more", "message"),
    [
        ("{", ["--reference3", "PTF"], "--credentials: .* it is no JSON"),
        ("[]", ["--reference3", "PTF"], "application_key"),
        ("{}", ["--reference3", "PTF"], "--credentials: application_key: is missing"),
        (json.dumps(SCB), [], "--reference3: Required"),
        (json.dumps(SCB), ["--reference3", "PTF", "--callers", "x"], "--callers"),
    ],
)
def test_the_command_says_what_is_wrong(
    live: Shop, tmp_path: Path, written: str, more: list[str], message: str
) -> None:
    path = tmp_path / "credentials.json"
    path.write_text(written)
    with pytest.raises(CommandError, match=message) as refused:
        command(live, *more, file=str(path))
    assert SECRET not in str(refused.value)


def test_a_test_merchant_is_said_to_be_the_trouble(shop: Shop, file: str) -> None:
    with pytest.raises(CommandError, match=r"^merchant_id: Test merchants"):
        command(shop, "--reference3", "PTF", file=file)


def test_the_help_names_the_credentials_of_each_bank() -> None:
    told = " ".join(
        load_command_class("merchants", "connect_bank").create_parser("", "").format_help().split()
    )
    for bank in banks.LIVE.values():
        assert all(need.name in told for need in bank.needs)


def test_a_file_that_is_not_there_is_said_so(live: Shop) -> None:
    with pytest.raises(CommandError, match="No such file"):
        command(live, file="/nowhere/credentials.json")


def test_the_console_shows_a_link_without_its_secrets(live: Shop, admin_client: Client) -> None:
    secret = door(live, BBL)
    listed = admin_client.get("/admin/merchants/banklink/")
    shown = admin_client.get(f"/admin/merchants/banklink/{live.merchant.id}/change/").content.decode()
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
    ("action", "kept"), [("accept_late_money", "accept"), ("review_late_money", "review")]
)
def test_staff_decide_what_becomes_of_late_money(live: Shop, action: str, kept: str) -> None:
    other = LateMoney.REVIEW if kept == "accept" else LateMoney.ACCEPT
    Merchant.objects.update(late_money=other)
    chosen = {"action": action, "_selected_action": [live.merchant.id]}
    staff("change_merchant").post("/admin/merchants/merchant/", chosen)
    assert Merchant.objects.get(pk=live.merchant.id).late_money == kept
    entry = LogEntry.objects.get()
    assert (entry.user.username, entry.object_id) == ("malee", live.merchant.id)
    assert kept in entry.change_message.lower()


def test_who_may_only_look_decides_nothing(live: Shop) -> None:
    chosen = {"action": "accept_late_money", "_selected_action": [live.merchant.id]}
    staff().post("/admin/merchants/merchant/", chosen)
    assert Merchant.objects.get(pk=live.merchant.id).late_money == "review"


def test_a_link_remembers_when_it_was_made_and_renewed(live: Shop, noon: datetime) -> None:
    later = noon.replace(hour=9)
    for now in (noon, later):
        links.connect(merchant_id=live.merchant.id, terms=TERMS, now=now)
    link = BankLink.objects.get()
    assert (link.created_at, link.updated_at) == (noon, later)
