"""People at the console, and odd money for them to decide about."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.test import Client

from core import clock
from reconciliation.models import BankTransaction
from tests.conftest import SandboxBankClient, Shop

EXCEPTIONS_URL = "/admin/reconciliation/reconciliationexception/"


def staff_client(name: str, *permissions: str) -> Client:
    """A person of staff with these permissions, logged in."""
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def exception_url(subject_id: str) -> str:
    return f"{EXCEPTIONS_URL}{quote(subject_id)}/change/"


def get_page(client: Client, path: str, **query: Any) -> str:
    answer = client.get(path, query)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


@dataclass
class ExceptionBuilder:
    """A shop to which money comes that does not fit."""

    shop: Shop
    bank: SandboxBankClient

    def told(self, code: dict[str, Any], **changes: Any) -> BankTransaction:
        """The bank transaction of what the bank tells about a code."""
        notification = self.bank.notification(code, **changes)
        assert self.bank.post(notification).status_code == 200
        movement: BankTransaction = BankTransaction.objects.get(
            bank_transaction_id=notification["transaction_id"], kind=notification["type"]
        )
        return movement

    def unmatched(self, **changes: Any) -> BankTransaction:
        return self.told(self.shop.qr_code(), **{"reference1": "NOBODYKNOWSTHIS00000"} | changes)

    def mismatch(self, satang: int = 149_900, **changes: Any) -> BankTransaction:
        return self.told(self.shop.qr_code(), satang=satang, **changes)

    def duplicate(self) -> BankTransaction:
        code = self.shop.qr_code()
        self.told(code)
        return self.told(code)

    def late(self, by: timedelta = timedelta(minutes=4)) -> BankTransaction:
        code = self.shop.qr_code(expiry_minutes=1)
        return self.told(code, paid_at=clock.now() + timedelta(minutes=1) + by)
