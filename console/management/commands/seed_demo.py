import json
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
        """The password of the new staff user. An existing user keeps the password."""
        if User.objects.filter(username=ADMIN_NAME).exists():
            return "(as it was)"
        password = get_random_string(20)
        User.objects.create_superuser(ADMIN_NAME, password=password)
        return password
