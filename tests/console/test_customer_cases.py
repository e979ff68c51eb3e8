"""Ten cases in the words of a customer (docs/staff-tasks.md), answered by support from the console."""

import html
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.test import Client

from console.people import roles
from console.people.roles import Role
from core import clock
from merchants import services as merchants
from merchants.models import HoldsPayers
from refunds.models import Refund
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import Seller
from tests.refunds.builders import NOBODY, send_due_refunds
from tests.stack import ROOT
from tests.webhooks.builders import make_endpoint
from webhooks.models import Delivery, DeliveryState

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture
def support(db: None) -> Client:
    """A support agent: the role, and no more."""
    roles.apply(apps)
    user = User.objects.create_user("nok", is_staff=True)
    user.groups.add(Group.objects.get(name=Role.SUPPORT))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def seller(shop: Shop, bank: SandboxBankClient) -> Seller:
    return Seller(shop, bank)


def order(seller: Seller, **fields: Any) -> dict[str, Any]:
    return seller.shop.qr_code(reference="SO-4711", **fields)


def arrived_without_its_reference(seller: Seller) -> str:
    seller.report(order(seller), reference1="NOBODYKNOWSTHIS00000")
    return "SO-4711"


def never_paid(seller: Seller) -> str:
    order(seller)
    return "so-4711"


def late(seller: Seller) -> str:
    code = order(seller, expiry_minutes=1)
    seller.report(code, paid_at=clock.now() + timedelta(minutes=5))
    return "SO-4711"


def twice(seller: Seller) -> str:
    code = order(seller)
    seller.report(code)
    return str(seller.report(code).bank_reference)


def too_much(seller: Seller) -> str:
    seller.report(order(seller), satang=200_000)
    return "SO-4711"


def refund_under_way(seller: Seller) -> str:
    seller.refund(seller.paid(reference="SO-4711"))
    return "SO-4711"


def refund_without_an_account(seller: Seller) -> str:
    seller.refund(seller.paid(payer=NOBODY, reference="SO-4711"))
    return "SO-4711"


def refund_while_the_bank_is_away(seller: Seller) -> str:
    seller.refund(seller.paid(reference="SO-4711"))
    send_due_refunds(2)
    return str(Refund.objects.get().pk)


def shop_was_not_told(seller: Seller) -> str:
    make_endpoint(seller.shop)
    seller.paid(reference="SO-4711")
    Delivery.objects.update(state=DeliveryState.FAILED, finished_at=clock.now())
    return "1,500.00 บาท"


def held(seller: Seller) -> str:
    merchants.set_policy(seller.shop.merchant.pk, holds_payers=HoldsPayers.UNKNOWN)
    seller.report(order(seller, client_name="Somying Jaidee"))
    return "Jaidee"


CASES = [
    arrived_without_its_reference, never_paid, late, twice, too_much, refund_under_way,
    refund_without_an_account, refund_while_the_bank_is_away, shop_was_not_told, held,
]  # fmt: skip


def page_of(support: Client, text: str) -> str:
    """What a search opens, or the payment that it finds."""
    answer = support.get("/admin/search/?" + urlencode({"q": text}), follow=True)
    shown = answer.content.decode()
    if answer.redirect_chain:
        return shown
    found = re.findall(r'href="(/admin/payments/payment/[^"?]+/change/)', shown)
    assert found, shown
    return support.get(found[0]).content.decode()


def declared() -> list[list[str]]:
    """The cells of each case in the table: what the customer says, what to type, to read and to answer."""
    text = (ROOT / "docs" / "staff-tasks.md").read_text("utf-8")
    table = text.partition("## Ten customers")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in table.splitlines() if line.startswith("| ")][2:]
    return [[cell.strip() for cell in row] for row in rows]


def test_table_has_each_case() -> None:
    assert len(declared()) == len(CASES) == 10


@pytest.mark.parametrize(("number", "case"), list(enumerate(CASES)), ids=[case.__name__ for case in CASES])
def test_agent_reads_the_answer_on_the_page_that_a_search_opens(
    seller: Seller, support: Client, number: int, case: Callable[[Seller], str]
) -> None:
    _, _, read, answer = declared()[number]
    shown = page_of(support, case(seller))
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", shown)).split()).replace(" .", ".")
    (sentence,) = re.findall(r"\*(.+)\*", read)
    assert re.search(".+".join(map(re.escape, sentence.split("…"))), text), text[:1500]
    if "Decide what happens to it" in answer:  # then on its page
        (link,) = set(re.findall(r'href="([^"]+)"[^>]*>Decide what happens to it', shown))
        text += support.get(link).content.decode()
    for button in re.findall(r"\*(.+?)\*", answer):
        assert button in text, button
