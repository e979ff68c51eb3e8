"""Staff read the console in their own language. The API and everything stored stay in English."""

import ast
import gettext
import json
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.test import Client
from django.utils import translation
from django.utils.translation.template import templatize

from audit_trail.models import AuditRecord
from console.management.commands import messages
from reconciliation.exceptions.resolution_records import AlreadyResolved
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import Seller, decide
from tests.reconciliation.exceptions.test_acts_in_console import act_page
from tests.staff_acts import act_form
from tests.withdrawals.builders import withdrawn

THAI = {"HTTP_ACCEPT_LANGUAGE": "th-TH,th;q=0.9,en;q=0.5"}
HOME = "/admin/"
pytestmark = pytest.mark.django_db


def language_of(page: str) -> str:
    return page.split('<html lang="')[1][:2]


@pytest.mark.slow
def test_console_follows_the_browser(admin_client: Client) -> None:
    assert language_of(admin_client.get(HOME, **THAI).text) == "th"  # type: ignore[arg-type]
    assert language_of(admin_client.get(HOME, HTTP_ACCEPT_LANGUAGE="de").text) == "en"
    assert language_of(admin_client.get(HOME).text) == "en"


@pytest.mark.slow
def test_staff_choose_a_language(admin_client: Client) -> None:
    answer = admin_client.post("/admin/language/", {"language": "th", "next": "/admin/payments/payment/"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/payments/payment/")
    assert language_of(admin_client.get(HOME, HTTP_ACCEPT_LANGUAGE="en").text) == "th"
    admin_client.post("/admin/language/", {"language": "en"})
    assert language_of(admin_client.get(HOME, **THAI).text) == "en"  # type: ignore[arg-type]


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_language_leads_to_no_other_site(admin_client: Client, target: str) -> None:
    answer = admin_client.post("/admin/language/", {"language": "th", "next": target})
    assert "evil" not in answer.headers["Location"]
    assert "alert" not in answer.headers["Location"]


@pytest.mark.slow
def test_request_of_the_api_after_one_of_staff_is_in_english(shop: Shop, admin_client: Client) -> None:
    """Both run in the same thread."""
    admin_client.get(HOME, **THAI)  # type: ignore[arg-type]
    assert translation.get_language() == settings.LANGUAGE_CODE
    refusal = shop.post("/Thai/v1/qr-codes", {"amount": -1})
    assert refusal.json()["error"]["message"].isascii()


@pytest.mark.slow
def test_errors_of_the_api_are_repeated_in_the_language_of_the_reader(
    shop: Shop, bank: SandboxBankClient, admin_client: Client
) -> None:
    paid = Seller(shop, bank).paid()
    withdrawn(shop, amount=150_000)
    form = {"amount": "1", "kind": "other", "reason": "cold soup", "token": str(uuid4())}
    page = f"/admin/payments/payment/{quote(paid)}/do/refund/"
    assert "The balance does not cover this amount." in admin_client.post(page, form).text
    thai = admin_client.post(page, form, **THAI).text  # type: ignore[arg-type]
    assert "ยอดคงเหลือไม่พอสำหรับจำนวนนี้" in thai
    assert "balance does not cover" not in thai
    answer = shop.post("/v1/refunds", {"payment_id": paid, "amount": 100})
    assert answer.json()["error"]["message"] == "The balance does not cover this amount."


@pytest.mark.slow
def test_refusals_of_exceptions_are_in_the_language_of_the_reader(
    shop: Shop, bank: SandboxBankClient, admin_client: Client
) -> None:
    bank_transaction = Seller(shop, bank).unmatched()
    page = act_page(bank_transaction.id, "send-to")
    form = {"bank_code": "NOBANK", "bank_account": "4051234567", "account_name": "Somying"}
    wrong = admin_client.post(page, act_form(**form), **THAI).text  # type: ignore[arg-type]
    assert "ไม่ใช่รหัสหรือชื่อย่อของธนาคาร" in wrong
    decide("send_back", bank_transaction)
    with translation.override("th"), pytest.raises(AlreadyResolved, match="malee ตัดสินรายการนี้แล้ว"):
        decide("send_back", bank_transaction)


def test_scripts_of_django_are_in_the_language_of_the_reader(admin_client: Client) -> None:
    thai = admin_client.get("/admin/jsi18n/", **THAI).text  # type: ignore[arg-type]
    catalog = dict(re.findall(r'^ *"(.*?)": (?:\[\s*)?"(.*?)"', thai, re.MULTILINE))
    assert catalog["%(sel)s of %(cnt)s selected"] == encoded("เลือกแล้ว %(sel)s จาก %(cnt)s")
    assert catalog["Choose all %s"] == encoded("เลือก%sทั้งหมด")
    assert catalog["Today"] == encoded("วันนี้"), "Django's own texts stay"


def encoded(text: str) -> str:
    """As JSON writes it, without the quotes."""
    return json.dumps(text)[1:-1]


def test_records_are_in_english(admin_client: Client) -> None:
    form = {"username": "somsri", "password1": "long-enough-49", "password2": "long-enough-49"}
    admin_client.post("/admin/auth/user/add/", form, **THAI)  # type: ignore[arg-type]
    assert User.objects.filter(username="somsri").exists()
    stored = list(AuditRecord.objects.values_list("act", "object_type", "before", "after", "reason"))
    assert stored
    assert str(stored).isascii()


# --- the translation is complete

CALLS = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy"}
IN_TEMPLATES = re.compile(r"gettext\(u?('(?:[^'\\\\]|\\\\.)*'|\"(?:[^\"\\\\]|\\\\.)*\")")
NOT_FOR_STAFF = {".venv", "tests", "bench", "clients", "node_modules", ".data"}


@pytest.mark.slow
def test_every_text_has_thai() -> None:
    """`make messages` collects new texts. Then translate them in locale/th, and run it again."""
    wanted = {*messages.texts(), *texts_of_code(), *texts_of_templates()}
    assert wanted - thai_in("locale") == set()


def test_texts_of_django_without_thai_have_ours() -> None:
    ours = thai_in("locale/django")
    assert {"Yes, I’m sure", "The two password fields didn’t match."} <= ours
    with translation.override("th"):
        assert [text for text in ours if text and translation.gettext(text) == text] == []


def thai_in(folder: str) -> set[str]:
    """The English texts for which the compiled catalog has Thai."""
    with (settings.BASE_DIR / folder / "th/LC_MESSAGES/django.mo").open("rb") as file:
        catalog = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    return {key[0] if isinstance(key, tuple) else key for key, thai in catalog.items() if thai}


def texts_of_code() -> Iterator[str]:
    for path in own_files("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
                text = node.args[0] if node.args else None
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    yield text.value


def texts_of_templates() -> Iterator[str]:
    for path in own_files("*.html"):
        for literal in IN_TEMPLATES.findall(templatize(path.read_text())):
            yield ast.literal_eval(literal)


def own_files(pattern: str) -> list[Path]:
    return [
        path
        for path in settings.BASE_DIR.rglob(pattern)
        if NOT_FOR_STAFF.isdisjoint(path.relative_to(settings.BASE_DIR).parts)
    ]
