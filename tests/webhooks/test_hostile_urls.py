"""No hostile URL is dialled, whether it comes over the API or is already in the database."""

from ipaddress import ip_network
from typing import Any

import pytest
from pytest_django import Settings

from tests.conftest import Shop
from tests.webhooks.builders import NOW, PAYMENT_SUCCEEDED, make_endpoint, publish
from tests.webhooks.hostile_urls import (
    CORPUS,
    PUBLIC,
    case_name,
    cases,
    resolver_of_cases,
    set_default_resolver,
)
from webhooks import wakeup
from webhooks.delivery import dispatcher
from webhooks.models import Delivery, DeliveryAttempt, DeliveryState, Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("names", "no_redis")]

# JSON with U+0000 is refused before the URL is checked. PostgreSQL also refuses it.
WITH_NUL = cases(ids=("S233",))
UNRESOLVED = cases(ids=("S285", "S286"))
REFUSED = [
    case
    for case in cases(expect=("reject_registration", "reject_connect"))
    if case not in UNRESOLVED + WITH_NUL
]
GOOD = cases(expect=("accept", "no_header_injection", "reject_or_punycode"))


def edges() -> list[dict[str, Any]]:
    """The first and the last address of each blocked range, as cases."""
    rows = [row for row in CORPUS["blocked_ranges"] if not row["cidr"].startswith("NOT")]
    networks = [(row, ip_network(row["cidr"])) for row in rows]
    hosts = [
        (row, f"[{address}]" if network.version == 6 else str(address))
        for row, network in networks
        for address in (network[0], network[-1])
    ]
    return [{"id": host, "why": row["why"], "url": f"https://{host}/"} for row, host in hosts]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve names to the addresses of the test data."""
    set_default_resolver(resolver_of_cases(CORPUS["cases"]), monkeypatch)


@pytest.fixture
def no_redis(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not connect to Redis, so that only webhooks are dialled."""
    settings.RATE_LIMIT = 0
    monkeypatch.setattr(wakeup, "wake", lambda: None)


def register(shop: Shop, case: dict[str, Any]) -> str:
    """`webhook` for success, otherwise status and error code."""
    answer = shop.post("/v1/webhooks", {"url": case["url"], "events": [PAYMENT_SUCCEEDED]})
    if answer.status_code == 200:
        return "webhook"
    return f"{answer.status_code} {answer.json()['error']['code']}"


@pytest.mark.parametrize("probe", ["reachable", "off"])
@pytest.mark.slow
def test_no_hostile_url_can_be_registered(
    shop: Shop, settings: Settings, dialled: list[str], probe: str
) -> None:
    settings.WEBHOOK_PROBE = probe
    answers = {case_name(case): register(shop, case) for case in REFUSED + edges()}
    assert {name: code for name, code in answers.items() if code != "422 invalid_url"} == {}
    assert not Endpoint.objects.exists()
    assert dialled == []


def test_url_with_nul_is_invalid_json(shop: Shop, dialled: list[str]) -> None:
    assert [register(shop, case) for case in WITH_NUL] == ["400 invalid_request"]
    assert dialled == []


def test_unresolvable_url_cannot_be_registered(shop: Shop, dialled: list[str]) -> None:
    assert [register(shop, case) for case in UNRESOLVED] == ["422 invalid_url"] * len(UNRESOLVED)
    assert dialled == []


@pytest.mark.parametrize("case", GOOD, ids=case_name)
@pytest.mark.slow
def test_public_url_is_dialled_and_can_be_registered(
    shop: Shop, settings: Settings, dialled: list[str], case: dict[str, Any]
) -> None:
    assert register(shop, case) == "422 invalid_url"  # because nobody answers
    settings.WEBHOOK_PROBE = "off"
    assert register(shop, case) == "webhook"
    assert Endpoint.objects.get().url == case["url"]
    publish(shop)
    assert dispatcher.drain(now=lambda: NOW) == 1
    assert DeliveryAttempt.objects.get().error == "connect_refused"
    assert dialled == [PUBLIC, PUBLIC]


@pytest.mark.slow
def test_hostile_url_stored_in_the_database_is_not_dialled(shop: Shop, dialled: list[str]) -> None:
    forced = REFUSED + UNRESOLVED + edges()
    names = {make_endpoint(shop, case["url"]).id: case_name(case) for case in forced}
    publish(shop)
    assert dispatcher.drain(now=lambda: NOW) == len(names) > 200
    found = DeliveryAttempt.objects.values_list("delivery__endpoint_id", "error")
    errors = {names[endpoint_id]: error for endpoint_id, error in found}
    unresolved = {case_name(case): "dns" for case in UNRESOLVED}
    assert errors == dict.fromkeys(names.values(), "blocked") | unresolved
    assert set(DeliveryAttempt.objects.values_list("status", "peer")) == {(None, "")}
    assert Delivery.objects.filter(state=DeliveryState.FAILED).count() == len(names) - len(UNRESOLVED)
    assert Delivery.objects.filter(state=DeliveryState.PENDING).count() == len(UNRESOLVED)
    assert dialled == []
