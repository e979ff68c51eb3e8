import json
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand
from django.utils.crypto import get_random_string

from core import clock
from merchants import services

ADMIN = "admin"


class Command(BaseCommand):
    help = "One demo merchant and one staff user, for a first look. Prints their secrets as JSON."

    def handle(self, *args: Any, **options: Any) -> str:
        password = get_random_string(20)
        user, _ = User.objects.get_or_create(
            username=ADMIN, defaults={"is_staff": True, "is_superuser": True}
        )
        user.set_password(password)
        user.save()
        merchant, secret = services.create_merchant(name="Demo Coffee", mode="test", now=clock.now())
        return json.dumps(
            {
                "merchant_id": merchant.id,
                "secret_key": secret,
                "admin_user": ADMIN,
                "admin_password": password,
            }
        )
