"""One request reveals the secret of a webhook. Rotation keeps all messages verifiable."""

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from idempotency.models import IdempotencyKey
from tests.conftest import Shop
from tests.webhook_receiver import Receiver
from tests.webhooks import verifiers
from tests.webhooks.api_calls import error_code, webhook_path
from tests.webhooks.builders import NOW, SECRET, make_endpoint, publish
from webhooks import signing
from webhooks.delivery import dispatcher
from webhooks.models import Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]


def revealed(shop: Shop, endpoint: Endpoint) -> str:
    return str(shop.get(webhook_path(endpoint, "secret")).json()["secret"])


def rotate(shop: Shop, endpoint: Endpoint, body: Any = None, *, at: datetime = NOW, **options: Any) -> Any:
    with time_machine.travel(at, tick=False):
        return shop.post(webhook_path(endpoint, "secret/rotate"), body, **options)


def test_webhook_secret_is_revealed_to_the_own_merchant_only(shop: Shop, other_shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    answer = shop.get(webhook_path(endpoint, "secret"))
    assert answer.json() == {"webhook_id": endpoint.id, "secret": SECRET}
    assert answer["Cache-Control"] == "no-store"
    assert error_code(other_shop.get(webhook_path(endpoint, "secret"))) == (404, "webhook_not_found")


def test_rotated_webhook_secret_is_not_in_the_answer(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    answer = rotate(shop, endpoint)
    assert answer.json() == shop.get(f"/v1/webhooks/{endpoint.id}").json()
    new = revealed(shop, endpoint)
    assert new != SECRET
    assert len(signing.key_bytes(new)) == 32
    assert new not in answer.content.decode()


def test_merchant_can_choose_the_webhook_secret(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    assert rotate(shop, endpoint, {"secret": "กขคงจฉชซฌญฎฏ-own"}).status_code == 200
    assert revealed(shop, endpoint) == "กขคงจฉชซฌญฎฏ-own"
    endpoint.refresh_from_db()
    assert "กขคงจฉชซฌญฎฏ-own" not in endpoint.secret_sealed


@pytest.mark.parametrize("secret", ["", 7, [], "whsec_", "whsec_short", "s" * 15, "ก" * 15, "s" * 256])
def test_rotation_to_a_malformed_secret_changes_nothing(shop: Shop, secret: Any) -> None:
    endpoint = make_endpoint(shop)
    assert error_code(rotate(shop, endpoint, {"secret": secret})) == (400, "invalid_secret")
    assert revealed(shop, endpoint) == SECRET


@pytest.mark.parametrize("verifies", [verifiers.by_python, verifiers.by_node])
@pytest.mark.slow
def test_both_webhook_secrets_verify_for_24_hours_after_rotation(
    shop: Shop, receiver: Receiver, verifies: verifiers.Verifier
) -> None:
    endpoint = make_endpoint(shop, receiver.url())
    rotate(shop, endpoint)
    last, over = NOW + timedelta(hours=23, minutes=59), NOW + timedelta(hours=24)
    for at in (last, over):
        with time_machine.travel(at, tick=False):
            publish(shop, at=at)
            dispatcher.drain()
    secrets = {"old": SECRET, "new": revealed(shop, endpoint)}
    taken = {
        (name, at)
        for name, secret in secrets.items()
        for at, sent in zip((last, over), receiver.requests, strict=True)
        if verifies(secret, sent.body, sent.headers, at)
    }
    assert taken == {("old", last), ("new", last), ("new", over)}


def test_repeated_rotation_runs_once_and_stores_no_secret(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    first = rotate(shop, endpoint, {"secret": "the second secret"}, key="once")
    again = rotate(shop, endpoint, {"secret": "the second secret"}, key="once")
    assert (again.content, again["Idempotent-Replayed"]) == (first.content, "true")
    stored = IdempotencyKey.objects.get()
    assert b"the second secret" not in bytes(stored.body_sealed) + bytes(stored.fingerprint)


def test_rotation_to_the_same_secret_changes_nothing(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    for _ in range(2):
        rotate(shop, endpoint, {"secret": "the second secret"})
    endpoint.refresh_from_db()
    assert endpoint.signing_secrets(NOW) == ["the second secret", SECRET]
    assert endpoint.signing_secrets(NOW + timedelta(hours=24)) == ["the second secret"]


def test_each_replaced_secret_signs_until_its_own_24_hours_are_over(shop: Shop) -> None:
    endpoint, hour = make_endpoint(shop), timedelta(hours=1)
    names = [f"the secret of hour {number}" for number in range(3)]
    for number, secret in enumerate(names):
        rotate(shop, endpoint, {"secret": secret}, at=NOW + number * hour)
    endpoint.refresh_from_db()
    first, second, third = names
    for hours, signing_then in (
        (2, [third, second, first, SECRET]),
        (23.99, [third, second, first, SECRET]),
        (24, [third, second, first]),
        (25, [third, second]),
        (26, [third]),
    ):
        assert endpoint.signing_secrets(NOW + hours * hour) == signing_then


@pytest.mark.slow
def test_at_most_five_replaced_secrets_sign(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    names = [f"the secret of turn {number}" for number in range(7)]
    for secret in names:
        rotate(shop, endpoint, {"secret": secret})
    endpoint.refresh_from_db()
    assert endpoint.signing_secrets(NOW) == names[:0:-1]


def test_secret_that_is_used_again_signs_once(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    for secret in ("the second secret", SECRET):
        rotate(shop, endpoint, {"secret": secret})
    endpoint.refresh_from_db()
    assert endpoint.signing_secrets(NOW) == [SECRET, "the second secret"]
