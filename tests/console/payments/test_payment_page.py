"""The page of a payment: the sentence about it, and all that belongs to it."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from html import unescape

import pytest
import time_machine
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.test import Client

from core import clock
from reconciliation.models import BankTransaction
from refunds import completion
from refunds.models import Refund
from tests.conftest import SandboxBankClient, Shop

pytestmark = pytest.mark.slow

Story = Callable[[Shop, SandboxBankClient], dict[str, str]]


def page_of(client: Client, code: dict[str, str]) -> str:
    response = client.get(f"/admin/payments/payment/{quote(code['payment_id'])}/change/")
    assert response.status_code == 200
    return re.sub(r"\s+", " ", response.content.decode())


def sentence(page: str) -> tuple[str, str]:
    """The colour and the text of the sentence."""
    found = re.search(r'<p class="lead (\w+)">(.*?)</p>', page)
    assert found
    return found[1], unescape(re.sub("<[^>]+>", "", found[2])).strip()


def unpaid(shop: Shop, bank: SandboxBankClient) -> dict[str, str]:
    return shop.qr_code(amount=99_900)


def paid(shop: Shop, bank: SandboxBankClient) -> dict[str, str]:
    code = unpaid(shop, bank)
    bank.notify(code)
    return code


def overpaid(shop: Shop, bank: SandboxBankClient) -> dict[str, str]:
    code = unpaid(shop, bank)
    bank.notify(code, satang=199_800)
    return code


def paid_twice(shop: Shop, bank: SandboxBankClient) -> dict[str, str]:
    code = paid(shop, bank)
    bank.notify(code)
    return code


def refunded_in_part(shop: Shop, bank: SandboxBankClient) -> dict[str, str]:
    code = paid(shop, bank)
    assert shop.post("/v1/refunds", {"payment_id": code["payment_id"], "amount": 9_900}).status_code == 200
    return code


def failed_refund(shop: Shop, bank: SandboxBankClient) -> dict[str, str]:
    code = refunded_in_part(shop, bank)
    refund = Refund.objects.get()
    completion.fail(refund, refund.payment, "invalid_account", clock.now())
    return code


def refund_for_approval(shop: Shop, bank: SandboxBankClient) -> dict[str, str]:
    code = shop.qr_code(amount=6_000_000)
    bank.notify(code, satang=6_000_000)
    account = {"bank_code": "SCB", "bank_account": "4051234567", "account_name": "Somying"}
    asked = {"payment_id": code["payment_id"], "destination": account}
    assert shop.post("/v1/refunds", asked).status_code == 200
    return code


def declined(shop: Shop, bank: SandboxBankClient) -> dict[str, str]:
    code = unpaid(shop, bank)
    bank.notify(code, type="decline")
    return code


@pytest.mark.parametrize(
    ("story", "tone", "text"),
    [
        (
            unpaid,
            "info",
            "Not paid yet. It expires on 2026-11-21 12:15:00. Check the payer's slip.",
        ),
        (paid, "good", "Paid: 999.00 THB on 2026-11-21 12:00:00. Nothing is left to do."),
        (
            overpaid,
            "bad",
            (
                "1,998.00 THB at the sandbox bank. Wrong amount: 999.00 THB too much, 999.00 THB expected. "
                "Decide what happens to it."
            ),
        ),
        (
            paid_twice,
            "bad",
            (
                "999.00 THB at the sandbox bank. Paid twice: first paid by {id} on 2026-11-21 12:00:00. "
                "Decide what happens to it."
            ),
        ),
        (
            refunded_in_part,
            "wait",
            "Refund of 99.00 THB: It is sent to the bank in a moment. See the refund.",
        ),
        (
            failed_refund,
            "bad",
            (
                "Refund of 99.00 THB: 99.00 THB did not arrive: the account does not exist. It is in the "
                "merchant's balance again. Ask the customer for another account, and refund again. See "
                "the refund."
            ),
        ),
        (
            refund_for_approval,
            "wait",
            (
                "Refund of 60,000.00 THB: 60,000.00 THB waits for approval by a second person. "
                "Approve or reject it."
            ),
        ),
        (
            declined,
            "calm",
            "Not paid: the bank declined the payment. The customer can try again or pay otherwise.",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_page_begins_with_how_the_payment_stands(
    shop: Shop,
    bank: SandboxBankClient,
    admin_client: Client,
    noon: datetime,
    story: Story,
    tone: str,
    text: str,
) -> None:
    with time_machine.travel(noon, tick=False):
        page = page_of(admin_client, story(shop, bank))
    credit = BankTransaction.objects.filter(match_result="applied").first()
    assert sentence(page) == (tone, text.format(id=credit and credit.bank_reference))


def test_expired_payment_says_when_it_expired(shop: Shop, admin_client: Client, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as moved:
        code = shop.qr_code(expiry_minutes=1)
        moved.shift(timedelta(minutes=2))
        assert sentence(page_of(admin_client, code)) == (
            "calm",
            (
                "Not paid: it expired on 2026-11-21 12:01:00. The customer needs a new code to pay. "
                "Check the payer's slip."
            ),
        )


def test_sentence_links_to_the_exception(shop: Shop, bank: SandboxBankClient, admin_client: Client) -> None:
    page = page_of(admin_client, overpaid(shop, bank))
    link = re.search(r'<p class="lead bad">[^<]*<a href="([^"]+)"', page)
    assert link
    assert "Wrong amount" in admin_client.get(link[1]).content.decode()


def test_page_shows_the_code_bank_transactions_refunds_and_ledger(
    shop: Shop, bank: SandboxBankClient, admin_client: Client
) -> None:
    code = unpaid(shop, bank)
    page = page_of(admin_client, code)
    assert f'<img src="/v1/qr-codes/{code["qr_code_id"]}/image?format=svg"' in page
    bank.notify(code)
    shop.post("/v1/refunds", {"payment_id": code["payment_id"], "amount": 9_900})
    page = page_of(admin_client, code)
    assert "/image?format=svg" not in page, "a paid code has no picture"
    for title in ("Bank transactions", "Refunds", "Ledger", "Timeline"):
        assert f"<h2>{title}</h2>" in page, title
    assert "callback ✓" in page
    assert ">99.00 THB</a>" in page
    assert f"Available, mch_…{shop.merchant.id[-6:]}" in page


def test_page_shows_only_parts_that_the_user_may_view(shop: Shop, bank: SandboxBankClient) -> None:
    code = paid(shop, bank)
    person = User.objects.create_user("malee", is_staff=True)
    person.user_permissions.add(Permission.objects.get(codename="view_payment"))
    client = Client()
    client.force_login(person)
    page = page_of(client, code)
    assert sentence(page)[0] == "good"
    for title in ("Bank transactions", "Refunds", "Webhooks", "Ledger"):
        assert f"<h2>{title}</h2>" not in page, title
