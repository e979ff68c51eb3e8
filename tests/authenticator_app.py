"""An authenticator app of a member of staff, as RFC 6238 describes it."""

import base64
import hmac
import re
import struct
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.test import Client

from core import clock

APP, CODE, NEW_CODES = "/admin/account/app/", "/admin/login/code/", "/admin/account/recovery-codes/"
STEP = timedelta(seconds=30)


@dataclass
class App:
    """`recovery_codes` are those that the console showed at the enrolment."""

    secret: str
    recovery_codes: list[str]

    def code(self, at: datetime | None = None) -> str:
        return code_of(self.secret, at or clock.now())

    def next_code(self) -> str:
        """A code that no login has used yet. The console accepts it early, because phones differ."""
        return self.code(clock.now() + STEP)


def code_of(secret: str, at: datetime) -> str:
    """Written by the RFC, not by the library that the console uses."""
    key = base64.b32decode(secret)
    digest = hmac.digest(key, struct.pack(">Q", int(at.timestamp()) // 30), "sha1")
    offset = digest[-1] & 15
    number = struct.unpack(">I", digest[offset : offset + 4])[0] & 0x7FFF_FFFF
    return f"{number % 1_000_000:06}"


def enrolled(user: Any) -> App:
    """Give this person an app and recovery codes."""
    secret = generate_totp_secret()
    TOTP.activate(user, secret)
    return App(secret, RecoveryCodes.activate(user).generate_codes())


def is_enrolled(user: Any) -> bool:
    return bool(Authenticator.objects.filter(user=user, type=Authenticator.Type.TOTP).exists())


def set_up(client: Client) -> tuple[App, Any]:
    """Enrol as a person does: by the page, its secret and the first code."""
    secret = secret_on(client.get(APP).content.decode())
    answer = client.post(APP, {"code": code_of(secret, clock.now())})
    return App(secret, codes_on(client.get(NEW_CODES).content.decode())), answer


def codes_on(page: str) -> list[str]:
    return re.findall(r"<code>(\d{8})</code>", page)


def secret_on(page: str) -> str:
    found = re.findall(r'class="secret"><code>([A-Z2-7]+)</code>', page)[0]
    return str(found)
