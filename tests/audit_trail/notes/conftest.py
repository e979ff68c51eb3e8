"""A shop with something to write notes about, and staff of each role."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.test import Client

from approvals.models import Approval
from console.people import roles
from payments.models import Payment
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import Seller
from tests.withdrawals.builders import withdrawn
from withdrawals.models import Withdrawal

People = Callable[[str, str], Client]


@pytest.fixture
def people(db: None) -> People:
    """Log in a person with this name and role."""
    roles.apply(apps)

    def log_in(name: str, role: str) -> Client:
        user = User.objects.create_user(name, is_staff=True)
        user.groups.set([Group.objects.get(name=role)])
        client = Client()
        client.force_login(user)
        return client

    return log_in


@pytest.fixture
def support(people: People) -> Client:
    return people("somsri", "support")


@pytest.fixture
def finance(people: People) -> Client:
    return people("malee", "finance")


@pytest.fixture
def seller(shop: Shop, bank: SandboxBankClient) -> Seller:
    return Seller(shop, bank)


@pytest.fixture
def payment(seller: Seller) -> Payment:
    return Payment.objects.get(pk=seller.paid())


@pytest.fixture
def things(seller: Seller, payment: Payment, settings: Any, noon: datetime) -> dict[str, Any]:
    """A row for each page with notes, by the label of its model."""
    seller.refund(payment.pk, amount=100)
    settings.APPROVAL_ITEM_LIMIT = 100
    withdrawn(seller.shop, amount=1_000)
    return {
        "payments.payment": payment.pk,
        "refunds.refund": payment.refunds.get().pk,
        "withdrawals.withdrawal": Withdrawal.objects.get().pk,
        "approvals.approval": Approval.objects.waiting().get().pk,
        "reconciliation.reconciliationexception": seller.unmatched().pk,
    }
