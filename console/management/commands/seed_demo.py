import json
import os
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand
from django.utils.crypto import get_random_string

from core import clock
from merchants import services
from merchants.models import Merchant

ADMIN_NAME = "admin"
SHOP_NAME = "Demo Coffee"


class Command(BaseCommand):
    help = "Create one demo merchant and one staff user. Prints their secrets as JSON."

    def handle(self, *args: Any, **options: Any) -> str:
        merchant, secret = self._merchant()
        made = {"merchant_id": merchant.id, "secret_key": secret}
        return json.dumps(made | {"admin_user": ADMIN_NAME, "admin_password": self._password()})

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
