"""Only checked addresses are dialled, also for names that change their address (DNS rebinding)."""

import socket
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

import pytest
from pytest_django import Settings

from tests.conftest import Shop
from tests.webhook_receiver import Receiver
from tests.webhooks.builders import PAYMENT_SUCCEEDED, only_delivery, publish
from tests.webhooks.hostile_urls import (
    PUBLIC,
    PUBLIC6,
    answers_of,
    case_name,
    cases,
    resolving,
    set_default_resolver,
)
from tests.webhooks.misbehaving_receivers import listening, replies
from tests.webhooks.name_server import NameServer, running_name_server
from tests.webhooks.post_calls import MARGIN_MS, OK, post
from webhooks.delivery import dispatcher
from webhooks.http.client import Timeouts
from webhooks.http.connections import MAX_DIALS
from webhooks.http.url_check import UrlPolicy
from webhooks.models import DeliveryAttempt

# OUTSIDE stands for the internet. Other loopback addresses stand for the internal network.
OUTSIDE, INSIDE = "127.0.0.2", "127.0.0.1"
NETWORKS = [ip_network(OUTSIDE)]
OUTSIDE_ONLY = UrlPolicy(allowed_networks=tuple(NETWORKS), allow_http=True)


THOUSANDS = " ".join(f"8.8.{number // 250}.{number % 250}" for number in range(2000))


@pytest.fixture
def names() -> Iterator[NameServer]:
    with running_name_server() as server:
        yield server


@pytest.fixture
def outside() -> Iterator[Receiver]:
    with listening(replies(OK), address=OUTSIDE) as receiver:
        yield receiver


@pytest.mark.parametrize("ttl", [0, 86_400])
def test_each_webhook_post_resolves_dns_once_and_dials_the_checked_address(
    names: NameServer, outside: Receiver, dialled: list[str], ttl: int
) -> None:
    names.ttl = ttl
    names.on("rebind.test", OUTSIDE, INSIDE, OUTSIDE, INSIDE)
    url, errors = outside.url(host="rebind.test"), []
    for _ in range(4):
        errors.append(post(url, policy=OUTSIDE_ONLY, resolver=names.getaddrinfo).error)
        assert names.lookups["rebind.test"] == len(errors)
    assert errors == ["", "blocked", "", "blocked"]
    assert len(outside.heads) == 2
    assert set(dialled) == {OUTSIDE}


@pytest.mark.django_db
@pytest.mark.slow
def test_name_that_resolves_to_an_internal_address_after_registration_is_not_dialled(
    shop: Shop,
    names: NameServer,
    outside: Receiver,
    dialled: list[str],
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS, settings.WEBHOOK_ALLOW_HTTP = NETWORKS, True
    settings.RATE_LIMIT = 0
    shop.get("/v1/webhooks")
    dialled.clear()  # forget the connection to Redis
    set_default_resolver(names.getaddrinfo, monkeypatch)
    names.on("rebind.test", OUTSIDE, INSIDE)
    answer = shop.post(
        "/v1/webhooks", {"url": outside.url(host="rebind.test"), "events": [PAYMENT_SUCCEEDED]}
    )
    assert answer.status_code == 200
    publish(shop)
    assert dispatcher.drain() == 1
    assert (only_delivery().state, DeliveryAttempt.objects.get().error) == ("failed", "blocked")
    assert names.lookups["rebind.test"] == 2
    assert (dialled, len(outside.heads)) == ([OUTSIDE], 1)


@pytest.mark.parametrize(
    "addresses",
    [
        INSIDE,
        f"{PUBLIC} 127.0.0.1",
        f"10.0.0.1 {PUBLIC}",
        f"{PUBLIC} fd00::1",
        f"{PUBLIC6} ::1",
        "::ffff:127.0.0.1",
        f"{PUBLIC} ::ffff:169.254.169.254",
        "64:ff9b::a00:1",
        f"{THOUSANDS} 192.168.0.1",
    ],
    ids=lambda addresses: addresses[-40:],
)
def test_internal_address_blocks_the_host_name_and_aliases(
    names: NameServer, dialled: list[str], addresses: str
) -> None:
    names.on("hooks.test", addresses)
    names.alias("alias.test", "hooks.test")
    for name in ("hooks.test", "alias.test"):
        answer = post(f"https://{name}/", policy=UrlPolicy(), resolver=names.getaddrinfo)
        assert (answer.error, answer.peer) == ("blocked", None)
        assert names.lookups[name]
    assert dialled == []


@pytest.mark.slow
def test_number_of_dialled_addresses_of_a_name_is_limited(names: NameServer, dialled: list[str]) -> None:
    names.on("huge.test", THOUSANDS)
    answer = post("https://huge.test/", policy=UrlPolicy(), resolver=names.getaddrinfo)
    assert answer.error == "connect_refused"
    assert len(set(dialled)) == len(dialled) == MAX_DIALS


def test_unknown_host_name_is_dns_error(names: NameServer) -> None:
    assert post("https://nothing.test/", resolver=names.getaddrinfo).error == "dns"
    assert names.lookups["nothing.test"] == 1


@pytest.mark.slow
def test_hanging_name_server_ends_at_timeout(names: NameServer, dialled: list[str]) -> None:
    names.silent.add("silent.test")
    answer = post("https://silent.test/", resolver=names.getaddrinfo, timeouts=Timeouts(total=0.2))
    assert (answer.error, dialled) == ("dns", [])
    assert 200 <= answer.duration_ms < 200 + MARGIN_MS


# --- without a name server


@pytest.mark.parametrize("case", cases(expect=("reject_connect",)), ids=case_name)
def test_blocked_dns_answers_are_not_dialled(case: dict[str, Any], dialled: list[str]) -> None:
    rounds = answers_of(case)
    resolver = resolving(*rounds)
    for _ in rounds:
        assert post(case["url"], policy=UrlPolicy(), resolver=resolver).error in ("blocked", "dns")
    assert dialled == []


@pytest.mark.parametrize("case", cases(expect=("reject_registration",)), ids=case_name)
def test_refused_url_stored_in_the_database_is_not_dialled(case: dict[str, Any], dialled: list[str]) -> None:
    resolver = resolving(*answers_of(case))
    assert post(case["url"], policy=UrlPolicy(), resolver=resolver).error == "blocked"
    assert dialled == []


def test_peer_other_than_checked_address_gets_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect
    with listening(replies(OK), reads=True) as receiver:
        monkeypatch.setattr(
            socket.socket, "connect", lambda sock, _: connect(sock, ("127.0.0.1", receiver.port))
        )
        answer = post("https://hooks.shop.test/", policy=UrlPolicy(), resolver=resolving(PUBLIC))
    assert (answer.error, answer.peer, receiver.heads) == ("blocked", "127.0.0.1", [])


def test_pooled_connection_is_not_used_after_address_is_blocked() -> None:
    with listening(replies(OK)) as receiver:
        assert post(receiver.url(host="hooks.shop.test")).error == ""
        other_address = resolving("127.0.0.2")
        assert post(receiver.url(host="hooks.shop.test"), resolver=other_address).error == "connect_refused"
        assert post(receiver.url(host="hooks.shop.test"), policy=UrlPolicy()).error == "blocked"
    assert len(receiver.heads) == 1
