"""Secrets of the deployment change, and a genuine retry is still answered with the stored answer."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from idempotency.fingerprint import Fingerprint
from payments.models import Payment
from tests.conftest import Shop
from tests.factories import qr_request

PATH = "/Thai/v1/qr-codes"
OLD, NEW = "old" * 20, "new" * 20
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def first_key(settings: Settings) -> None:
    settings.IDEMPOTENCY_KEYS = [OLD]


def ask(shop: Shop, **changes: Any) -> Any:
    return shop.post(PATH, qr_request(**changes), key="order-1")


def code_of(answer: Any) -> str:
    return str(answer.json()["error"]["code"])


def test_retry_replays_after_secret_key_rotation(shop: Shop, settings: Settings) -> None:
    first = ask(shop)
    settings.SECRET_KEY = "another" * 10
    again = ask(shop)
    assert (again.status_code, again.content) == (200, first.content)
    assert again.headers["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize("keys", [[OLD, NEW], [NEW, OLD], ["third" * 10, NEW, OLD]])
def test_retry_replays_while_the_old_secret_key_is_a_fallback(
    shop: Shop, settings: Settings, keys: list[str]
) -> None:
    first = ask(shop)
    settings.IDEMPOTENCY_KEYS = keys
    assert ask(shop).content == first.content
    assert Payment.objects.count() == 1


def test_different_request_is_refused_with_any_fingerprint_key(shop: Shop, settings: Settings) -> None:
    ask(shop)
    settings.IDEMPOTENCY_KEYS = [NEW, OLD]
    assert code_of(ask(shop, amount=150_001)) == "idempotency_key_reused"


def test_request_fingerprints_use_the_newest_key(shop: Shop, settings: Settings) -> None:
    settings.IDEMPOTENCY_KEYS = [NEW, OLD]
    first = ask(shop)
    settings.IDEMPOTENCY_KEYS = [NEW]
    assert ask(shop).content == first.content
    settings.IDEMPOTENCY_KEYS = [OLD]
    assert code_of(ask(shop)) == "idempotency_key_reused"


def test_retry_from_before_upgrade_replays_with_secret_key_fallback(shop: Shop, settings: Settings) -> None:
    settings.IDEMPOTENCY_KEYS = [settings.SECRET_KEY]
    first = ask(shop)
    settings.IDEMPOTENCY_KEYS = [NEW, settings.SECRET_KEY]
    assert ask(shop).content == first.content


def test_request_fingerprint_does_not_reveal_the_request() -> None:
    made = Fingerprint.of(method="POST", operation="pay", body={"bank_account": "1234567890"})
    assert "1234567890" not in repr(made)


@pytest.mark.parametrize(("fallbacks", "status"), [([OLD], 200), ([], 302)])
@pytest.mark.slow
def test_staff_stay_logged_in_while_the_old_secret_key_is_a_fallback(
    settings: Settings, fallbacks: list[str], status: int
) -> None:
    settings.SECRET_KEY = OLD
    client = Client()
    client.force_login(User.objects.create_superuser("malee"))
    assert client.get("/admin/").status_code == 200
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, fallbacks
    assert client.get("/admin/").status_code == status
