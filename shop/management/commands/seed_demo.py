import json
import os
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand
from django.utils.crypto import get_random_string

from console.people.roles import ShopRole
from core import clock
from merchants import services
from merchants.models import Merchant
from shop.models import Membership

ADMIN_NAME, OWNER_NAME = "admin", "owner"
SHOP_NAME = "Demo Coffee"


class Command(BaseCommand):
    help = "Create one demo merchant, its owner and one staff user. Prints their secrets as JSON."

    def handle(self, *args: Any, **options: Any) -> str:
        merchant, secret = self._merchant()
        made = {"merchant_id": merchant.id, "secret_key": secret}
        password = self._password()
        self._owner(merchant, password)
        return json.dumps(
            made | {"admin_user": ADMIN_NAME, "owner_user": OWNER_NAME, "admin_password": password}
        )

    def _owner(self, merchant: Merchant, password: str) -> None:
        """Who owns the demo merchant, with the password of the new staff user."""
        if not User.objects.filter(username=OWNER_NAME).exists():
            owner = User.objects.create_user(OWNER_NAME, password=password)
            Membership.objects.create(
                user_id=owner.pk, merchant=merchant, role=ShopRole.OWNER, created_at=clock.now()
            )

    def _merchant(self) -> tuple[Merchant, str]:
        merchant = Merchant.objects.filter(name=SHOP_NAME, mode="test").first()
        if merchant is None:
            return services.create_merchant(name=SHOP_NAME, mode="test", now=clock.now())
        return merchant, services.issue_key(merchant=merchant, now=clock.now())[1]

    def _password(self) -> str:
        """The password of the new staff user: ADMIN_PASSWORD, or a new one. An existing user keeps its own.

        ADMIN_PASSWORD is still known when the command runs again after an interruption.
        """
        password = os.environ.get("ADMIN_PASSWORD") or get_random_string(20)
        existing = User.objects.filter(username=ADMIN_NAME).first()
        if existing is None:
            User.objects.create_superuser(ADMIN_NAME, password=password)
        elif not existing.check_password(password):
            return "(as it was)"
        return password
