"""A dump of the database and the contents of Redis contain no secret in any encoding."""

import base64
import io
import json
import os
import re
import subprocess
from itertools import chain
from typing import Any

import pytest
from django.conf import settings as loaded
from django.core.management import call_command
from django.db import connection
from pytest_django import Settings
from redis import Redis

from config.devstack.postgres_programs import find_programs
from core import vault
from tests.conftest import SandboxBankClient, Shop, new_client, open_shop
from tests.secret_search import leaks
from tests.stack import wait_until
from webhooks.models import Event
from webhooks.wakeup import QUEUE

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

CLIENT, PAYER, OTHER_PAYER, LOST_PAYER = "7412589630", "3698521470", "8529637410", "1597534862"
FIRST_SECRET = "whsec_Zmlyc3QtY2FuYXJ5LWZpcnN0LWNhbmFyeS1maXJzdA=="
SECOND_SECRET = "whsec_c2Vjb25kLWNhbmFyeS1zZWNvbmQtY2FuYXJ5LXNlYw=="
PLAIN_SECRET = "a secret of plain words, กขค"
REFERENCE = "order-that-anybody-may-read"
TOKEN_START = vault.PREFIX.encode()
TOKEN = re.compile(TOKEN_START + rb"[\w-]")  # triggers compare with its start alone
HOOK = {"url": "https://shop.example/hook", "events": ["payment.pending", "payment.succeeded"]}


def test_leak_search_finds_encoded_secrets() -> None:
    """The search finds plain text, base64 at each offset, hexadecimal, and base64 in hexadecimal."""
    for before in ("", "a", "ab", "abc"):
        text = f"{before}{CLIENT}?>".encode()
        standard, for_urls = base64.b64encode(text), base64.urlsafe_b64encode(text)
        for found in (text, standard, for_urls, text.hex().encode(), standard.hex().encode()):
            assert leaks({"account": CLIENT.encode()}, found) == ["account"]
    assert leaks({"account": CLIENT.encode()}, f"{CLIENT[:-1]}x".encode()) == []


def test_database_dump_contains_no_secret(settings: Settings) -> None:
    shop = open_shop("Somtam House")
    secrets = use_secrets(shop, settings)
    # A dump has the bodies of events compressed.
    stolen, bodies = dump(), b"".join(bytes(each.body) for each in Event.objects.all())
    assert REFERENCE.encode() in stolen
    assert REFERENCE.encode() in bodies
    tokens = len(TOKEN.findall(stolen)), stolen.count(TOKEN_START.hex().encode())
    assert tokens == (3, 9), "three secrets; three accounts, three notifications, three stored answers"
    assert leaks(secrets, stolen + bodies) == []


def test_redis_contains_no_secret(settings: Settings) -> None:
    settings.RATE_LIMIT, settings.RATE_LIMIT_BURST = (
        0.01,
        100,
    )  # a slow refill, so that the counters stay in Redis
    with Redis.from_url(loaded.REDIS_URL) as client:
        client.delete(QUEUE)
        secrets = use_secrets(open_shop("Somtam House"), settings)
        wait_until(lambda: bool(client.llen(QUEUE)), 60)
        held = {key: held_under(client, key) for key in client.keys("*")}
    assert json.loads(held[QUEUE.encode()][0])["headers"]["task"] == "webhooks.drain"
    assert any(key.startswith(b"rate:") for key in held), "it counts requests as well"
    assert leaks(secrets, b"\n".join(chain(held, *held.values()))) == []


def use_secrets(shop: Shop, settings: Settings) -> dict[str, bytes]:
    """Run requests with secrets and change the encryption key; return the secrets."""
    settings.WEBHOOK_PROBE = "off"
    bank = SandboxBankClient(new_client())
    made = shop.post("/v1/webhooks", HOOK | {"secret": FIRST_SECRET}, key="hook").json()
    shop.post(f"/v1/webhooks/{made['webhook_id']}/secret/rotate", {"secret": SECOND_SECRET}, key="new")
    shop.post("/v1/webhooks", HOOK | {"secret": PLAIN_SECRET})
    settings.FIELD_ENCRYPTION_KEYS = [vault.new_key(), *settings.FIELD_ENCRYPTION_KEYS]
    request_body = {
        "amount": 150_000,
        "currency": "THB",
        "client_bank_account": CLIENT,
        "reference": REFERENCE,
    }
    code = shop.post("/v1/qr-codes", request_body, key="order").json()
    notification = bank.notification(code, payer_account=PAYER)
    messages: list[Any] = [
        notification,
        notification | {"payer_account": OTHER_PAYER, "amount": "9.00"},
        json.dumps({"from": LOST_PAYER}).encode(),
    ]
    shown = [bank.post(result).status_code for result in messages]
    assert shop.payment(code["payment_id"])["status"] == "succeeded"
    assert shown[0] == 200
    call_command("reseal", stdout=io.StringIO())
    return known(shop, settings)


def known(shop: Shop, settings: Settings) -> dict[str, bytes]:
    named = {"API key": shop.secret_key[16:], "client": CLIENT, "payer": PAYER, "another": OTHER_PAYER}
    named |= {"first": FIRST_SECRET[6:], "second": SECOND_SECRET[6:], "plain": PLAIN_SECRET}
    named |= {"unread": LOST_PAYER, "of the bank": settings.SANDBOX_BANK_SECRET, "site": settings.SECRET_KEY}
    secrets = [*settings.FIELD_ENCRYPTION_KEYS, *settings.IDEMPOTENCY_KEYS]
    named |= {f"key {number}": key for number, key in enumerate(secrets)}
    keys = {f"{name} decoded": base64.b64decode(named[name]) for name in ("first", "second")}
    return {name: text.encode() for name, text in named.items()} | keys


def dump() -> bytes:
    """The output of `pg_dump`."""
    given = connection.get_connection_params()
    where = ["-h", str(given["host"]), "-p", str(given["port"]), "-U", given["user"], given["dbname"]]
    environment = os.environ | {"PGPASSWORD": given["password"]}
    return subprocess.check_output([find_programs() / "pg_dump", *where], env=environment, timeout=60)


def held_under(client: Any, key: bytes) -> list[bytes]:
    match client.type(key):
        case b"list":
            return list(client.lrange(key, 0, -1))
        case b"hash":
            return list(chain.from_iterable(client.hgetall(key).items()))
        case b"set":
            return list(client.smembers(key))
        case b"zset":
            return list(client.zrange(key, 0, -1))
        case _:
            return [client.get(key)]
