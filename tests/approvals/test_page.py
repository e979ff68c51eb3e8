"""The page of an approval says what happens on each decision, who asked, when and why."""

from datetime import timedelta
from html import unescape
from typing import Any

import pytest
import time_machine
from django.test import Client
from pytest_django import Settings

from approvals.models import Approval, ApprovalKind
from console.approvals import approval_admin
from core import clock, ids
from merchants.services import issue_key
from tests.approvals.builders import LIST, MALEE, approval_of, click, listed, page, staff
from tests.conftest import SandboxBankClient, Shop
from tests.context import acting_as
from tests.reconciliation.builders import Seller, decide
from tests.withdrawals.builders import fund, withdrawn

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def limits(settings: Settings) -> None:
    settings.APPROVAL_ITEM_LIMIT, settings.APPROVAL_DAILY_LIMIT = 100_000, 0


@pytest.fixture
def seller(shop: Shop, bank: SandboxBankClient) -> Seller:
    return Seller(shop, bank)


@pytest.fixture
def malee() -> Client:
    return staff("malee", "decide_approval", "view_personal_data")


def approval_row(kind: ApprovalKind, shop: Shop | None, **fields: Any) -> Approval:
    row: Approval = Approval.objects.create(
        id=ids.new("apr_", clock.now()),
        kind=kind,
        subject_id=ids.new("wd_", clock.now()),
        merchant=shop.merchant if shop else None,
        amount=150_000,
        status="waiting",
        reason="item_limit",
        requested_by=MALEE,
        requested_at=clock.now(),
        **fields,
    )
    return row


@pytest.mark.parametrize("decision", ["approve", "reject"])
@pytest.mark.parametrize("reason", ["", "   "])
def test_each_decision_needs_a_reason(shop: Shop, decision: str, reason: str) -> None:
    approval, prasit = approval_row(ApprovalKind.WITHDRAWAL, shop), staff("prasit", "decide_approval")
    assert "This field is required." in click(prasit, decision, approval.subject_id, note=reason)
    approval.refresh_from_db()
    assert (approval.status, approval.decided_by) == ("waiting", "")


@pytest.mark.parametrize("kind", list(ApprovalKind))
def test_each_kind_says_what_both_decisions_do(shop: Shop, malee: Client, kind: ApprovalKind) -> None:
    for merchant in (shop, None):
        approval = approval_row(kind, merchant, account_last4="4567", bank_code="014", account_name="Somying")
        on_approval, on_rejection = approval_admin.effects(approval)
        assert on_approval.endswith(".")
        assert on_rejection.endswith(".")
        assert "1,500.00 THB" in on_approval
        text = unescape(malee.get(f"{LIST}{approval.pk.replace('_', '_5F')}/change/").content.decode())
        assert on_approval in text
        assert on_rejection in text
        Approval.objects.filter(pk=approval.pk).update(status="canceled", decided_at=clock.now())


def test_page_names_the_key_and_who_issued_it(shop: Shop, bank: SandboxBankClient, malee: Client) -> None:
    fund(shop, bank)
    made = withdrawn(shop, amount=150_000)["withdrawal_id"]
    text = unescape(page(malee, made))
    key = approval_of(made).requested_by.partition(":")[2]
    assert f"API key {key}, issued by" in text
    assert "1,500.00 THB of Somtam House is sent to" in text
    assert "If it is rejected:" in text
    assert "Never. It waits until somebody decides" in text
    assert "above the limit per item" in text
    assert "/do/approve/" in text


def test_own_request_says_so_and_has_no_buttons(seller: Seller, malee: Client) -> None:
    reversal = seller.reverse(seller.sale(), 150_001)
    decide("write_off", reversal)
    own = page(malee, reversal.id)
    assert "You requested this. Another person must decide." in own
    assert "/do/approve/" not in own
    theirs = page(staff("somsak", "decide_approval"), reversal.id)
    assert "You requested this." not in theirs
    assert "/do/approve/" in theirs
    assert "The customer called." in theirs


def test_request_of_an_own_key_says_so(shop: Shop, bank: SandboxBankClient, malee: Client) -> None:
    fund(shop, bank)
    with acting_as(MALEE):
        _, secret = issue_key(merchant=shop.merchant, now=clock.now())
    made = withdrawn(Shop(shop.merchant, secret, shop.http), amount=150_000)["withdrawal_id"]
    text = page(malee, made)
    assert "An API key that you issued requested this." in text
    assert "/do/approve/" not in text


def test_age_of_a_request_is_shown_and_marked_after_a_day(
    shop: Shop, bank: SandboxBankClient, malee: Client
) -> None:
    fund(shop, bank)
    made = withdrawn(shop, amount=150_000)["withdrawal_id"]
    assert 'class="state bad"' not in listed(malee)
    with time_machine.travel(clock.now() + timedelta(days=2), tick=False):
        late = staff("somsak", "decide_approval")
        assert '<span class="state bad">2 days</span>' in listed(late)
        assert ", 2 days ago" in page(late, made)


def test_page_hides_the_account_without_the_permission(shop: Shop, malee: Client) -> None:
    approval = approval_row(
        ApprovalKind.WITHDRAWAL, shop, account_last4="4567", bank_code="014", account_name="Somying"
    )
    url = f"{LIST}{approval.pk.replace('_', '_5F')}/change/"
    assert "Somying, ...4567 at 014" in malee.get(url).content.decode()
    hidden = staff("viewer").get(url).content.decode()
    assert "4567" not in hidden
    assert "Somying" not in hidden


def test_page_is_thai_for_thai_readers(shop: Shop, malee: Client) -> None:
    approval = approval_row(ApprovalKind.WRITE_OFF, shop)
    malee.cookies["django_language"] = "th"
    text = malee.get(f"{LIST}{approval.pk.replace('_', '_5F')}/change/").content.decode()
    assert "ถ้าอนุมัติ:" in text
    assert "If it is approved" not in text
