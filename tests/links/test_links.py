"""Payment links through the API."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine

from core import clock
from merchants import services as merchants
from tests.conftest import Shop, new_client
from tests.links.conftest import LINKS, LinkShop, Visitor
from webhooks.models import Event


def test_new_link_has_the_defaults(links: LinkShop, settings: Any) -> None:
    link = links.link()
    assert link["url"] == f"{settings.BASE_URL}/pay/links/{link['payment_link_id']}"
    assert (link["status"], link["max_payments"], link["expiry_minutes"]) == ("active", 1, 15)
    assert (link["payments"], link["open_codes"], link["currency"]) == (0, 0, "THB")
    assert links.read(link) == link


def test_null_is_any_number_of_payments(links: LinkShop) -> None:
    assert links.link(max_payments=None)["max_payments"] is None
    assert links.link(max_payments=5)["max_payments"] == 5


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({}, "amount"),
        ({"amount": 99}, "amount"),
        ({"amount": 1500.0}, "amount"),
        ({"amount": 200_000_001}, "amount"),
        ({"amount": 100, "amount_min": 100}, "amount"),
        ({"amount_min": 100}, "amount_max"),
        ({"amount_max": 100}, "amount_min"),
        ({"amount_min": 200, "amount_max": 100}, "amount_max"),
        ({"amount": 100, "currency": "USD"}, "currency"),
        ({"amount": 100, "max_payments": 0}, "max_payments"),
        ({"amount": 100, "max_payments": 10_001}, "max_payments"),
        ({"amount": 100, "description": "x" * 256}, "description"),
        ({"amount": 100, "reference": "x" * 36}, "reference"),
        ({"amount": 100, "metadata": []}, "metadata"),
        ({"amount": 100, "expiry_minutes": 1441}, "expiry_minutes"),
        ({"amount": 100, "expires_at": "2026-11-21"}, "expires_at"),
        ({"amount": 100, "expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"amount": 100, "expires_at": "2099-01-01T00:00:00Z"}, "expires_at"),
        ({"amount": 100, "expires_at": "2569-12-01T00:00:00Z"}, "expires_at"),
    ],
)
def test_error_names_the_field(links: LinkShop, fields: dict[str, Any], param: str) -> None:
    answer = links.ask(**fields)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (400, param, f"invalid_{param}")
    assert links.shop.get(LINKS).json()["total"] == 0


def test_link_can_live_for_366_days(links: LinkShop) -> None:
    with time_machine.travel(clock.now(), tick=False):
        at = clock.now() + timedelta(days=366)
        assert links.link(expires_at=clock.iso(at))["expires_at"] == clock.iso(at)
        too_late = clock.iso(at + timedelta(milliseconds=1))
        assert links.ask(amount=100, expires_at=too_late).status_code == 400


def test_merchant_without_a_bank_is_told(links: LinkShop) -> None:
    links.shop.merchant.biller_id = ""
    links.shop.merchant.save()
    assert links.ask(amount=100).json()["error"]["code"] == "bank_not_configured"


def test_same_key_answers_the_same_link(links: LinkShop) -> None:
    first, again = (links.ask(amount=100, key="link-1") for _ in range(2))
    assert (first.json(), again.headers["Idempotent-Replayed"]) == (again.json(), "true")
    assert links.ask(amount=200, key="link-1").status_code == 409
    assert links.shop.get(LINKS).json()["total"] == 1


def test_list_shows_the_newest_first_with_their_counts(links: LinkShop) -> None:
    first, second = links.link(reference="A"), links.link(reference="B")
    links.paid(Visitor(first).code())
    Visitor(second).code()
    found = links.shop.get(LINKS).json()
    assert [each["payment_link_id"] for each in found["payment_links"]] == [
        each["payment_link_id"] for each in (second, first)
    ]
    assert [(each["payments"], each["open_codes"]) for each in found["payment_links"]] == [(0, 1), (1, 0)]
    assert found["total"] == 2
    only = links.shop.get(f"{LINKS}?reference=A").json()
    assert [each["payment_link_id"] for each in only["payment_links"]] == [first["payment_link_id"]]
    after = links.shop.get(f"{LINKS}?after={second['payment_link_id']}").json()
    assert [each["payment_link_id"] for each in after["payment_links"]] == [first["payment_link_id"]]


def test_payments_of_a_link_are_listed(links: LinkShop) -> None:
    link = links.link(max_payments=None)
    codes = [Visitor(link).code() for _ in range(2)]
    links.shop.qr_code()
    found = links.shop.get(f"/v1/payments?payment_link_id={link['payment_link_id']}").json()
    assert [each["qr_code_id"] for each in found["payments"]] == codes[::-1]
    assert links.shop.get("/v1/payments?payment_link_id=pl_x").json()["total"] == 0


def test_events_of_its_payments_name_the_link(links: LinkShop) -> None:
    link = links.link()
    links.paid(Visitor(link).code())
    shown = [event.body.decode() for event in Event.objects.order_by("pk")]
    assert len(shown) == 2
    assert all(f'"payment_link_id":"{link["payment_link_id"]}"' in each for each in shown)


def test_timeline_names_the_link_whose_visitor_made_the_code(links: LinkShop) -> None:
    link = links.link()
    payment_id = f"pay_{Visitor(link).code()[3:]}"
    (created,) = links.shop.get(f"/v1/payments/{payment_id}/timeline").json()["timeline"]
    assert (created["type"], created["actor"]) == ("payment.pending", f"link:{link['payment_link_id']}")


def test_test_clock_brings_the_expiry_of_links_forward(links: LinkShop) -> None:
    link = links.link(expires_at=clock.iso(clock.now() + timedelta(days=2)))
    moved = links.shop.post("/sandbox/v1/clock", {"advance_minutes": 2 * 1440}).json()["moved"]
    assert moved["payment_links"] == 1
    assert links.read(link)["status"] == "expired"


def test_only_an_active_link_is_deactivated(links: LinkShop) -> None:
    link, paid = links.link(), links.link()
    links.paid(Visitor(paid).code())
    assert links.deactivate(link).json()["deactivated_at"] is not None
    for each, status in ((link, "deactivated"), (paid, "completed")):
        error = links.deactivate(each).json()["error"]
        assert error["code"] == "payment_link_not_active"
        assert status in error["message"]


@pytest.mark.parametrize(
    ("format_", "start"), [("", b"\x89PNG"), ("?format=png", b"\x89PNG"), ("?format=svg", b"<svg")]
)
def test_picture_is_the_address_as_a_qr_code(links: LinkShop, format_: str, start: bytes) -> None:
    link = links.link()
    picture = links.shop.get(f"{LINKS}/{link['payment_link_id']}/picture{format_}")
    assert picture.content.startswith(start)
    assert links.shop.get(f"{LINKS}/{link['payment_link_id']}/picture?format=gif").status_code == 400


def test_key_without_the_scope_reads_links_and_makes_none(links: LinkShop, shop: Shop) -> None:
    scopes = ["payments:read", "payments:write"]
    _, secret = merchants.issue_key(merchant=shop.merchant, now=clock.now(), scopes=scopes)
    link, limited = links.link(), LinkShop(Shop(shop.merchant, secret, new_client()), links.bank)
    assert limited.ask(amount=100).json()["error"]["code"] == "insufficient_scope"
    assert limited.deactivate(link).status_code == 403
    assert limited.read(link) == link
