"""Refunds in the console: staff see no whole account numbers, and cancel refunds that are not submitted."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from banks import ReportedTransfer, TransferResult
from core import clock
from reconciliation.matching.order_completion import HANDLERS
from refunds.models import Refund
from tests.refunds.builders import NOBODY, PAYEE, RefundShop, send_due_refunds
from tests.staff_acts import acts_of_staff, run_act, send_act
from tests.transfers.builders import Bank
from transfers import services as transfers

pytestmark = pytest.mark.slow


def cancel(client: Client, refund: dict[str, Any]) -> str:
    """Cancel it and return the page."""
    return run_act(client, Refund, refund["refund_id"], "cancel")


def test_refund_page_shows_the_masked_account(refund_shop: RefundShop, admin_client: Client) -> None:
    refund = refund_shop.refund(refund_shop.paid(), destination=PAYEE)
    url = reverse("admin:refunds_refund_change", args=[refund["refund_id"]])
    shown = admin_client.get(url).content.decode()
    assert "004 xxxxxx4567" in shown
    assert PAYEE["bank_account"] not in shown


def test_refund_page_opens_without_a_destination(refund_shop: RefundShop, admin_client: Client) -> None:
    refund = refund_shop.refund(refund_shop.paid(payer=NOBODY))
    shown = admin_client.get(reverse("admin:refunds_refund_change", args=[refund["refund_id"]]))
    assert "customer&#x27;s account" in shown.content.decode()


def test_refund_canceled_by_staff_is_in_the_admin_log(refund_shop: RefundShop, admin_client: Client) -> None:
    refund = refund_shop.refund(refund_shop.paid())
    assert "done." in cancel(admin_client, refund)
    assert refund_shop.read(refund)["status"] == "canceled"
    assert refund_shop.balance() == (150_000, 0)
    assert acts_of_staff().get().object_id == refund["refund_id"]


def test_staff_cannot_cancel_a_submitted_refund(
    refund_shop: RefundShop, admin_client: Client, served_by: Callable[..., Bank]
) -> None:
    served_by()
    refund = refund_shop.refund(refund_shop.paid())
    send_due_refunds()
    assert "only a refund that was not submitted to a bank" in cancel(admin_client, refund)
    assert refund_shop.read(refund)["status"] == "pending"
    assert not acts_of_staff().exists()


def test_staff_without_permission_cannot_cancel_a_refund(refund_shop: RefundShop) -> None:
    refund = refund_shop.refund(refund_shop.paid())
    onlooker = User.objects.create_user("onlooker", is_staff=True)
    onlooker.user_permissions.add(Permission.objects.get(codename="view_refund"))
    client = Client()
    client.force_login(onlooker)
    assert send_act(client, Refund, refund["refund_id"], "cancel").status_code == 403
    assert refund_shop.read(refund)["status"] == "pending"


def test_staff_can_filter_returned_refunds(
    refund_shop: RefundShop, admin_client: Client, served_by: Callable[..., Bank]
) -> None:
    served_by(sends=[TransferResult("succeeded")])
    returned, kept = (refund_shop.refund(refund_shop.paid()) for _ in range(2))
    send_due_refunds()
    transfers.apply_notification(
        ReportedTransfer(returned["refund_id"], "returned"), HANDLERS["ref"], now=clock.now()
    )
    listed = admin_client.get(
        f"{reverse('admin:refunds_refund_changelist')}?returned_at__isempty=0"
    ).content.decode()
    assert (returned["refund_id"] in listed, kept["refund_id"] in listed) == (True, False)
    assert (
        'thaiqr_refunds_returned_open{money="sandbox"} 1.0'
        in refund_shop.shop.http.get("/metrics").content.decode()
    )
