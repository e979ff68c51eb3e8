"""Staff read everything about webhooks except secrets, and change nothing."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from core import ids
from tests.conftest import Shop
from tests.webhooks.cast import NOW, make_endpoint, only_delivery, publish
from webhooks.models import Attempt, Endpoint, Event

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("staff", password=ids.random_text(20)))
    return client


@pytest.fixture
def history(shop: Shop) -> Endpoint:
    """A delivery with an attempt."""
    endpoint = make_endpoint(shop)
    publish(shop, note="ส้มตำ")
    Attempt.objects.create(delivery=only_delivery(), number=1, started_at=NOW, error="timeout")
    return endpoint


@pytest.mark.parametrize("model", ["endpoint", "event", "delivery", "attempt"])
def test_lists_open_and_can_be_searched(staff: Client, history: Endpoint, model: str) -> None:
    page = staff.get(f"/admin/webhooks/{model}/", {"q": history.id})
    assert page.status_code == 200
    assert staff.get(f"/admin/webhooks/{model}/add/").status_code == 403


def test_an_endpoint_shows_no_secret(staff: Client, history: Endpoint) -> None:
    page = staff.get(f"/admin/webhooks/endpoint/{history.id}/change/").content.decode()
    assert history.url in page
    assert history.secret not in page
    assert history.secret_sealed not in page
    assert 'name="_save"' not in page


def test_an_event_shows_its_body_as_text(staff: Client, history: Endpoint) -> None:
    page = staff.get(f"/admin/webhooks/event/{Event.objects.get().id}/change/").content.decode()
    assert "ส้มตำ" in page


def test_a_delivery_shows_its_attempts(staff: Client, history: Endpoint) -> None:
    page = staff.get(f"/admin/webhooks/delivery/{only_delivery().id}/change/").content.decode()
    assert "timeout" in page
