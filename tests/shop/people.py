"""People of merchants who are logged in, and shops with something on each page."""

from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from approvals import payout_accounts
from console.people.roles import ShopRole
from core import clock
from links import services as links
from payments.models import Payment, PaymentException
from refunds.models import Refund
from request_log.models import RequestRecord
from settlements.models import Settlement
from shop.models import Membership
from shop.site import site
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import Seller
from tests.request_log.builders import make_records
from tests.settlements.conftest import a_settlement
from tests.webhooks.builders import make_endpoint
from tests.withdrawals.builders import withdrawn
from transactions.models import Transaction
from webhooks.models import Delivery
from withdrawals.models import Withdrawal


def person_of(shop: Shop, role: ShopRole = ShopRole.OWNER, name: str = "") -> Client:
    """The browser of a person with this role, who is logged in."""
    user = User.objects.create_user(name or f"{role}-{shop.merchant.name.split()[0]}".lower())
    join(user, shop, role)
    client = Client(raise_request_exception=True)
    client.force_login(user)
    return client


def join(user: User, shop: Shop, role: ShopRole) -> Membership:
    return Membership.objects.create(
        user_id=user.pk, merchant=shop.merchant, role=role, created_at=clock.now()
    )


@dataclass
class FullShop:
    """A merchant with a row on each page of its shop."""

    shop: Shop
    bank: SandboxBankClient
    rows: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seller, shop, merchant = Seller(self.shop, self.bank), self.shop, self.shop.merchant
        endpoint = make_endpoint(shop)
        paid = seller.paid()
        seller.refund(paid, amount=100)
        seller.mismatch()
        withdrawn(shop, amount=101)
        account = payout_accounts.add(
            merchant, bank_code="014", bank_account="4051234567", account_name="Malee", now=clock.now()
        )
        self.rows = {
            "merchants.merchant": merchant,
            "merchants.apikey": merchant.keys.get(),
            "payments.payment": Payment.objects.get(pk=paid),
            "links.paymentlink": links.create(
                merchant=merchant, amount=150_000, expiry_minutes=15, now=clock.now()
            ),
            "payments.paymentexception": PaymentException.objects.get(payment__merchant=merchant),
            "refunds.refund": Refund.objects.get(merchant=merchant),
            "withdrawals.withdrawal": Withdrawal.objects.get(merchant=merchant),
            "approvals.payoutaccount": account,
            "transactions.transaction": Transaction.objects.filter(merchant=merchant).latest("pk"),
            "request_log.requestrecord": RequestRecord.objects.get(pk=make_records(shop, 1)[0]),
            "settlements.settlement": Settlement.objects.get(pk=a_settlement(shop)),
            "webhooks.endpoint": endpoint,
            "webhooks.delivery": Delivery.objects.filter(endpoint__merchant=merchant).latest("pk"),
        }


def labels() -> list[str]:
    """The models that have pages."""
    return sorted(model._meta.label_lower for model in site._registry)


def list_url(label: str) -> str:
    return f"/shop/{label.replace('.', '/')}/"


def row_url(row: Any) -> str:
    return f"{list_url(row._meta.label_lower)}{quoted(row.pk)}/change/"


def quoted(key: str) -> str:
    return str(key).replace("_", "_5F")
