"""An authenticator app of a member of staff, as RFC 6238 describes it."""

import base64
import hmac
import re
import struct
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.test import Client

from console.people import second_factors
from core import clock

APP, CODE = "/admin/sign-in/app/", "/admin/sign-in/code/"


@dataclass
class App:
    """`recovery_codes` are those that the console showed at the enrolment."""

    secret: str
    recovery_codes: list[str]

    def code(self, at: datetime | None = None) -> str:
        return code_of(self.secret, at or clock.now())

    def next_code(self) -> str:
        """A code that no login has used yet. The console accepts it early, because phones differ."""
        return self.code(clock.now() + timedelta(seconds=second_factors.STEP_SECONDS))


def code_of(secret: str, at: datetime) -> str:
    """Written by the RFC, not by the library that the console uses."""
    key = base64.b32decode(secret)
    digest = hmac.digest(key, struct.pack(">Q", int(at.timestamp()) // 30), "sha1")
    offset = digest[-1] & 15
    number = struct.unpack(">I", digest[offset : offset + 4])[0] & 0x7FFF_FFFF
    return f"{number % 1_000_000:06}"


def enrolled(user: Any, at: datetime | None = None) -> App:
    """Give this person an app. The code of this moment is used."""
    secret, now = second_factors.new_secret(), at or clock.now()
    codes = second_factors.enrol(user, secret, code_of(secret, now), is_replacement=True, now=now)
    return App(secret, codes)


def set_up(client: Client) -> tuple[App, Any]:
    """Enrol as a person does: by the page, its secret and the first code."""
    page = client.get(APP).content.decode()
    return confirm(client, page)


def confirm(client: Client, page: str) -> tuple[App, Any]:
    secret = secret_on(page)
    sealed = re.findall(r'name="sealed_secret" value="([^"]+)"', page)[0]
    answer = client.post(APP, {"sealed_secret": sealed, "code": code_of(secret, clock.now())})
    return App(secret, re.findall(r"<code>([a-z2-7-]{19})</code>", answer.content.decode())), answer


def secret_on(page: str) -> str:
    found = re.findall(r'class="secret"><code>([A-Z2-7 ]+)</code>', page)[0]
    return str(found).replace(" ", "")
