"""People at the console, and odd money for them to decide about."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.test import Client

from core import clock
from receipts.models import Receipt
from tests.conftest import BankCaller, Shop

LIST = "/admin/receipts/waiting/"


def staff(name: str, *permissions: str) -> Client:
    """A person of staff with these permissions, logged in."""
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def page_of(subject_id: str) -> str:
    return f"{LIST}{quote(subject_id)}/change/"


def read(client: Client, path: str, **query: Any) -> str:
    answer = client.get(path, query)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


@dataclass
class Odd:
    """A shop to which money comes that does not fit."""

    shop: Shop
    bank: BankCaller

    def told(self, code: dict[str, Any], **changes: Any) -> Receipt:
        """The receipt of what the bank tells about a code."""
        notice = self.bank.notice(code, **changes)
        assert self.bank.post(notice).status_code == 200
        receipt: Receipt = Receipt.objects.get(
            bank_transaction_id=notice["transaction_id"], kind=notice["type"]
        )
        return receipt

    def unmatched(self, **changes: Any) -> Receipt:
        return self.told(self.shop.qr_code(), **{"reference1": "NOBODYKNOWSTHIS00000"} | changes)

    def mismatch(self, satang: int = 149_900, **changes: Any) -> Receipt:
        return self.told(self.shop.qr_code(), satang=satang, **changes)

    def duplicate(self) -> Receipt:
        code = self.shop.qr_code()
        self.told(code)
        return self.told(code)

    def late(self, by: timedelta = timedelta(minutes=4)) -> Receipt:
        code = self.shop.qr_code(expiry_minutes=1)
        return self.told(code, paid_at=clock.now() + timedelta(minutes=1) + by)
