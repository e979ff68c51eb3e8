"""Webhooks that people of a merchant add, change, try and end, without the API."""

import re
from typing import Any

import pytest
from django.test import Client

from audit_trail.models import AuditRecord
from console.people.roles import ShopRole
from tests.conftest import Shop
from tests.shop.people import person_of, row_url
from tests.staff_acts import act_form
from tests.webhook_receiver import Receiver
from tests.webhooks.builders import make_endpoint
from tests.webhooks.conftest import loopback, receiver
from webhooks.models import Delivery, Endpoint, EndpointAction

__all__ = ["loopback", "receiver"]  # fixtures
pytestmark = pytest.mark.django_db
NEW = "/shop/webhooks/endpoint/do/add-webhook/"
URL = "https://shop.example/hook"


def send(client: Client, page: str, **values: Any) -> Any:
    given = {"url": URL, "events": ["payment.succeeded"]}
    return client.post(page, act_form(**given | values) | {"reason": ""}, follow=True)


def act(webhook: Endpoint, slug: str) -> str:
    return row_url(webhook).replace("/change/", f"/do/{slug}/")


@pytest.fixture
def no_probe(settings: Any) -> None:
    settings.WEBHOOK_PROBE = "off"


@pytest.mark.parametrize("role", [ShopRole.OWNER, ShopRole.DEVELOPER])
@pytest.mark.usefixtures("no_probe")
def test_webhook_is_added_tried_changed_and_ended(shop: Shop, other_shop: Shop, role: ShopRole) -> None:
    person = person_of(shop, role)
    assert NEW in person.get("/shop/webhooks/endpoint/").text
    page = send(person, NEW, merchant=other_shop.merchant.pk)
    webhook = Endpoint.objects.get()
    assert (webhook.merchant, webhook.url, webhook.events) == (shop.merchant, URL, ["payment.succeeded"])
    assert webhook.secret in page.text
    assert "no-store" in page.headers["Cache-Control"]
    assert webhook.secret not in person.get(row_url(webhook)).text
    person.post(act(webhook, "test"), act_form(), follow=True)
    assert Delivery.objects.get().endpoint == webhook
    assert URL in person.get(act(webhook, "change")).text
    send(person, act(webhook, "change"), url=f"{URL}/2", events=["refund.completed", "refund.failed"])
    webhook.refresh_from_db()
    assert (webhook.url, webhook.events) == (f"{URL}/2", ["refund.completed", "refund.failed"])
    person.post(act(webhook, "delete"), act_form(), follow=True)
    webhook.refresh_from_db()
    assert webhook.deleted_at is not None
    records = AuditRecord.objects.filter(merchant_id=shop.merchant.pk).order_by("id")
    acts = ["endpoint_added", "endpoint_tested", "endpoint_changed", "endpoint_deleted"]
    assert [each.act for each in records] == acts
    assert {each.actor for each in records} == {f"person:{role}-somtam"}
    assert webhook.secret not in str([(each.before, each.after) for each in records])
    done = EndpointAction.objects.order_by("id").values_list("type", flat=True)
    assert list(done) == ["created", "url_changed", "events_changed", "deleted"]


def test_new_webhook_is_probed_with_its_secret(shop: Shop, receiver: Receiver, loopback: None) -> None:
    page = send(person_of(shop), NEW, url=receiver.url())
    (ping,) = receiver.requests
    assert ping.headers["webhook-signature"]
    assert re.search(r"whsec_[\w+/=]+", page.text)
    assert Endpoint.objects.get().health.verified_at is not None


@pytest.mark.parametrize(
    "url",
    [
        *("http://shop.example/", "https://127.0.0.1/", "https://169.254.169.254/latest", "ftp://x"),
        *("https://user:secret@shop.example/", "https://[::1]/", "https://localhost/", "x", " "),
    ],
)
@pytest.mark.usefixtures("no_probe")
def test_address_inside_the_network_is_refused_at_its_field(shop: Shop, url: str) -> None:
    webhook = make_endpoint(shop)
    for page in (NEW, act(webhook, "change")):
        shown = send(person_of(shop, name=page), page, url=url)
        assert list(shown.context["form"].errors) == ["url"]
    assert Endpoint.objects.get().url == webhook.url
    assert not AuditRecord.objects.exists()


@pytest.mark.parametrize("events", [[], ["webhook.ping"], ["approval.requested"]])
@pytest.mark.usefixtures("no_probe")
def test_events_are_those_of_merchants(shop: Shop, events: list[str]) -> None:
    shown = send(person_of(shop), NEW, events=events)
    assert list(shown.context["form"].errors) == ["events"]
    assert not Endpoint.objects.exists()


@pytest.mark.usefixtures("no_probe")
def test_limit_of_webhooks_holds(shop: Shop, settings: Any) -> None:
    settings.WEBHOOKS_PER_MERCHANT = 1
    make_endpoint(shop)
    assert "at most 1 webhooks" in send(person_of(shop), NEW).text
    assert Endpoint.objects.count() == 1


@pytest.mark.parametrize("role", [ShopRole.MANAGER, ShopRole.CASHIER, ShopRole.ACCOUNTANT])
@pytest.mark.usefixtures("no_probe")
def test_others_add_and_end_no_webhook(shop: Shop, role: ShopRole) -> None:
    webhook, person = make_endpoint(shop), person_of(shop, role)
    for page in (NEW, act(webhook, "change"), act(webhook, "delete"), act(webhook, "test")):
        assert send(person, page).status_code == 403, page
    webhook.refresh_from_db()
    assert (Endpoint.objects.count(), webhook.deleted_at) == (1, None)


@pytest.mark.usefixtures("no_probe")
def test_webhook_of_a_rival_is_not_changed_and_not_ended(shop: Shop, other_shop: Shop) -> None:
    theirs, owner = make_endpoint(other_shop), person_of(shop)
    for slug in ("change", "delete", "test"):
        assert owner.get(act(theirs, slug)).status_code == 404
        send(owner, act(theirs, slug), url=f"{URL}/mine")
    before = (theirs.url, theirs.deleted_at)
    theirs.refresh_from_db()
    assert (theirs.url, theirs.deleted_at) == before
    assert not Delivery.objects.exists()


@pytest.mark.usefixtures("no_probe")
def test_same_form_adds_one_webhook(shop: Shop) -> None:
    owner, form = person_of(shop), act_form(url=URL, events=["payment.succeeded"])
    for _ in range(2):
        owner.post(NEW, form, follow=True)
    assert Endpoint.objects.count() == 1
