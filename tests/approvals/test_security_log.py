"""The security log says who decided about outgoing money and who changed where it may go."""

from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from approvals import payout_accounts
from core import clock
from tests.approvals.builders import MALEE, add_payout_account, click
from tests.conftest import SandboxBankClient, Shop
from tests.context import acting_as
from tests.security_lines import security_lines
from tests.withdrawals.builders import ACCOUNT, fund, withdrawn

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("button", "event"), [("approve", "outgoing_money_approved"), ("reject", "outgoing_money_rejected")]
)
def test_approval_decision_is_in_the_security_log(
    shop: Shop,
    bank: SandboxBankClient,
    malee: Client,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    django_capture_on_commit_callbacks: Any,
    button: str,
    event: str,
) -> None:
    settings.APPROVAL_ITEM_LIMIT = 1_000
    fund(shop, bank, 100_000)
    withdrawal = withdrawn(shop, amount=50_000)
    with django_capture_on_commit_callbacks(execute=True):
        click(malee, button, withdrawal["withdrawal_id"])
    [line] = security_lines(caplog, event)
    assert (line["actor"], line["subject"], line["merchant"]) == (
        "staff:malee",
        withdrawal["withdrawal_id"],
        shop.merchant.pk,
    )
    assert line["request_id"].startswith("req_")


def test_payout_account_changes_are_logged_without_the_account(
    shop: Shop, caplog: pytest.LogCaptureFixture, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True), acting_as(MALEE):
        payout_accounts.restrict(shop.merchant, True, now=clock.now())
        account = add_payout_account(shop)
        payout_accounts.remove(account.id, now=clock.now())
    [switched] = security_lines(caplog, "payout_list_switched")
    [added] = security_lines(caplog, "payout_account_added")
    [removed] = security_lines(caplog, "payout_account_removed")
    assert switched["changes"] == ["+is_restricted"]
    assert added["subject"] == removed["subject"] == account.id
    assert {line["merchant"] for line in (switched, added, removed)} == {shop.merchant.pk}
    assert ACCOUNT not in caplog.text
    assert "Somchai" not in caplog.text
