"""Names that change their meaning, asked over the wire: what is dialled is what was judged, every time."""

from collections.abc import Iterator
from ipaddress import ip_network

import pytest
from pytest_django import Settings

from tests.conftest import Shop
from tests.webhooks.cast import PAID, only_delivery, publish
from tests.webhooks.corpus import PUBLIC, PUBLIC6, ask_by_default
from tests.webhooks.name_server import NameServer, answering
from tests.webhooks.posting import MARGIN_MS, OK, post
from tests.webhooks.receivers import Receiver, listening, replies
from webhooks import deliveries
from webhooks.client import Timeouts
from webhooks.connections import MOST_DIALS
from webhooks.models import Attempt
from webhooks.targets import Policy

# It plays the internet, and all else of loopback the network that must not be reached.
OUTSIDE, INSIDE = "127.0.0.2", "127.0.0.1"
NETWORKS = [ip_network(OUTSIDE)]
OUTSIDE_ONLY = Policy(allowed_networks=tuple(NETWORKS), allow_http=True)


THOUSANDS = " ".join(f"8.8.{number // 250}.{number % 250}" for number in range(2000))


@pytest.fixture
def names() -> Iterator[NameServer]:
    with answering() as server:
        yield server


@pytest.fixture
def outside() -> Iterator[Receiver]:
    with listening(replies(OK), address=OUTSIDE) as receiver:
        yield receiver


@pytest.mark.parametrize("ttl", [0, 86_400])
def test_each_post_asks_once_and_dials_what_was_judged(
    names: NameServer, outside: Receiver, dialled: list[str], ttl: int
) -> None:
    names.ttl = ttl
    names.on("rebind.test", OUTSIDE, INSIDE, OUTSIDE, INSIDE)
    url, errors = outside.url("rebind.test"), []
    for _ in range(4):
        errors.append(post(url, policy=OUTSIDE_ONLY, resolver=names.getaddrinfo).error)
        assert names.lookups["rebind.test"] == len(errors)
    assert errors == ["", "blocked", "", "blocked"]
    assert len(outside.heads) == 2
    assert set(dialled) == {OUTSIDE}


@pytest.mark.django_db
def test_a_name_that_turns_inside_after_its_registration_is_not_dialled_again(
    shop: Shop,
    names: NameServer,
    outside: Receiver,
    dialled: list[str],
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS, settings.WEBHOOK_ALLOW_HTTP = NETWORKS, True
    settings.RATE_LIMIT = 0  # or Redis would be dialled
    ask_by_default(names.getaddrinfo, monkeypatch)
    names.on("rebind.test", OUTSIDE, INSIDE)
    answer = shop.post("/v1/webhooks", {"url": outside.url("rebind.test"), "events": [PAID]})
    assert answer.status_code == 200
    publish(shop)
    assert deliveries.drain() == 1
    assert (only_delivery().state, Attempt.objects.get().error) == ("failed", "blocked")
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
def test_one_address_inside_refuses_the_name_and_whatever_leads_to_it(
    names: NameServer, dialled: list[str], addresses: str
) -> None:
    names.on("hooks.test", addresses)
    names.alias("alias.test", "hooks.test")
    for name in ("hooks.test", "alias.test"):
        answer = post(f"https://{name}/", policy=Policy(), resolver=names.getaddrinfo)
        assert (answer.error, answer.peer) == ("blocked", None)
        assert names.lookups[name]
    assert dialled == []


def test_of_thousands_of_addresses_a_few_are_dialled(names: NameServer, dialled: list[str]) -> None:
    names.on("huge.test", THOUSANDS)
    answer = post("https://huge.test/", policy=Policy(), resolver=names.getaddrinfo)
    assert answer.error == "connect_refused"
    assert len(set(dialled)) == len(dialled) == MOST_DIALS


def test_a_name_that_does_not_exist_is_a_failure_of_dns(names: NameServer) -> None:
    assert post("https://nothing.test/", resolver=names.getaddrinfo).error == "dns"
    assert names.lookups["nothing.test"] == 1


def test_a_name_server_that_never_answers_is_left_in_time(names: NameServer, dialled: list[str]) -> None:
    names.silent.add("silent.test")
    answer = post("https://silent.test/", resolver=names.getaddrinfo, timeouts=Timeouts(total=0.2))
    assert (answer.error, dialled) == ("dns", [])
    assert 200 <= answer.duration_ms < 200 + MARGIN_MS
