"""Claim links in the console: the refund's page shows them, and staff revoke them."""

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from approvals import services as approvals
from approvals.models import Approval
from audit_trail.acts import Act
from core import clock, request_context
from merchants import services
from refunds.completion import APPROVAL_HANDLER
from refunds.models import ClaimLink, Refund
from tests.conftest import SandboxBankClient, Shop, new_client
from tests.reconciliation.claims.builders import claim_of
from tests.staff_acts import acts_of_staff, run_act

pytestmark = pytest.mark.slow


def test_staff_see_the_link_and_revoke_it(shop: Shop, bank: SandboxBankClient, admin_client: Client) -> None:
    claim = claim_of(shop, bank)
    refund_id = claim.refund["refund_id"]
    url = reverse("admin:refunds_refund_change", args=[refund_id])
    shown = admin_client.get(url).content.decode()
    assert "Open, 5 tries left, until" in shown
    assert claim.token not in shown
    assert "done." in run_act(admin_client, Refund, refund_id, "revoke-claim-link")
    assert claim.read().status_code == claim.send(last_digits="7890").status_code == 404
    assert ClaimLink.objects.get().revoked_at is not None
    record = acts_of_staff().get()
    assert (record.act, record.object_id) == (Act.CLAIM_LINK_REVOKED, refund_id)
    assert "revoke-claim-link" not in admin_client.get(url).content.decode()


def test_issuer_of_the_key_that_made_the_link_cannot_approve_the_claim(
    shop: Shop, bank: SandboxBankClient, settings: Settings
) -> None:
    settings.APPROVAL_ITEM_LIMIT = 100
    request_context.set_actor("staff:somsri")
    _key, secret = services.issue_key(merchant=shop.merchant, now=clock.now())
    claim = claim_of(Shop(shop.merchant, secret, new_client()), bank)
    assert claim.send(last_digits="7890").status_code == 303
    approval = Approval.objects.get(subject_id=claim.refund["refund_id"])
    request_context.set_actor("staff:somsri")
    with pytest.raises(approvals.NotDecidable, match="Another person must decide"):
        approvals.approve(approval.id, APPROVAL_HANDLER, now=clock.now())
