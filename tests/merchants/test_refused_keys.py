"""Requests without a valid key: counted by address, refused before they reach the database."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from core import clock
from merchants import refused_keys, secret_keys, services
from tests.conftest import Shop, new_client
from tests.error_messages import check_error
from tests.stack import wait_until

MOST = 5
ATTACKER, OTHER = "203.0.113.7", "198.51.100.1"


@pytest.fixture(autouse=True)
def limited(settings: Settings, db: None) -> Iterator[None]:
    settings.REFUSED_KEYS_PER_MINUTE = MOST
    yield


def ask(secret: str | None, address: str = ATTACKER) -> Any:
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    return new_client().get("/v1/balance", headers=headers, REMOTE_ADDR=address)


def guess(address: str = ATTACKER) -> int:
    """Send a request with a well-formed unknown key. Return the status."""
    return int(ask(secret_keys.generate("test"), address).status_code)


@pytest.mark.parametrize(
    "secret",
    [None, "nonsense", "tq_test_" + "x" * 46, secret_keys.generate("live")],
    ids=["missing", "nonsense", "wrong checksum", "unknown"],  # without the key, which is another each time
)
def test_refused_keys_of_any_kind_are_limited_by_address(secret: str | None) -> None:
    statuses = [ask(secret).status_code for _ in range(MOST + 3)]
    assert statuses == [401] * MOST + [429] * 3
    refused = ask(secret)
    retry_after = refused.headers["Retry-After"]
    check_error(refused.json(), "too_many_refused_keys", retry_after=retry_after)
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60 / MOST
    assert guess(OTHER) == 401


def test_request_over_the_refused_key_limit_does_not_reach_the_database() -> None:
    for _ in range(MOST):
        guess()
    with CaptureQueriesContext(connection) as asked:
        assert guess() == 429
    assert len(asked) == 0


def test_refused_keys_of_ipv6_clients_are_limited_by_network() -> None:
    statuses = [guess(f"2001:db8:1:2::{number}") for number in range(MOST + 1)]
    assert statuses == [401] * MOST + [429]
    assert guess("2001:db8:1:3::1") == 401


def test_valid_key_works_at_an_address_with_refused_keys(shop: Shop) -> None:
    """Both are behind one address, such as a NAT or a proxy that PROXY_HOPS does not know."""
    assert ask(shop.secret_key).status_code == 200
    for _ in range(MOST + 1):
        guess()
    assert guess() == 429
    assert ask(shop.secret_key).status_code == 200


def test_valid_key_works_at_a_blocked_address_in_a_new_process(shop: Shop) -> None:
    assert ask(shop.secret_key).status_code == 200
    refused_keys.refused_keys.forget()
    for _ in range(MOST + 1):
        guess()
    assert guess() == 429
    assert ask(shop.secret_key).status_code == 200


def test_cached_key_that_is_revoked_is_refused_and_counted(shop: Shop) -> None:
    assert ask(shop.secret_key).status_code == 200
    services.revoke_key(key_id=secret_keys.public_id(shop.secret_key), now=clock.now())
    assert [ask(shop.secret_key).status_code for _ in range(MOST + 1)] == [401] * MOST + [429]


@pytest.mark.slow
def test_refused_key_limit_recovers_with_time(settings: Settings) -> None:
    settings.REFUSED_KEYS_PER_MINUTE = 240
    while guess() == 401:
        pass
    wait_until(lambda: guess() == 401, 60)


def test_limit_of_zero_disables_the_refused_key_limit(settings: Settings) -> None:
    settings.REFUSED_KEYS_PER_MINUTE = 0
    assert {guess() for _ in range(MOST * 3)} == {401}


def test_refused_keys_are_not_limited_without_redis(settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert {guess() for _ in range(MOST * 3)} == {401}


@pytest.mark.slow
def test_refused_key_limit_remembers_a_limited_number_of_addresses_and_keys(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.REFUSED_KEYS_PER_MINUTE = 1
    monkeypatch.setattr(refused_keys, "MAX_REMEMBERED", 3)
    for number in range(10):
        guess(f"203.0.{number}.1")
        _, secret = services.issue_key(merchant=shop.merchant, now=clock.now())
        assert ask(secret, OTHER).status_code == 200
    known = refused_keys.refused_keys
    assert len(known._blocked_until) <= 3
    assert len(known._valid_keys) <= 3


def test_insufficient_scope_is_not_a_refused_key(shop: Shop) -> None:
    _, secret = services.issue_key(merchant=shop.merchant, now=clock.now(), scopes=["refunds:write"])
    reader = replace(shop, secret_key=secret)
    assert [reader.get("/v1/balance").status_code for _ in range(MOST + 2)] == [403] * (MOST + 2)
