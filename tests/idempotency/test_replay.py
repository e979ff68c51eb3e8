"""A request is done once per key; everything else about keys, through the API."""

import zlib
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from core import vault
from idempotency import services
from idempotency.models import IdempotencyKey
from idempotency.usual_answer import USUAL_ANSWER
from payments.models import Payment
from tests.conftest import Shop, open_shop
from tests.factories import qr_request
from tests.webhooks.builders import make_endpoint
from webhooks import wakeup
from webhooks.models import Delivery

PATH = "/Thai/v1/qr-codes"


def test_repeated_request_returns_same_bytes_and_creates_nothing(shop: Shop) -> None:
    first = shop.post(PATH, qr_request(), key="order-1")
    again = shop.post(PATH, qr_request(), key="order-1")
    assert (again.status_code, again.content) == (200, first.content)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers["X-Request-Id"] != first.headers["X-Request-Id"]
    assert Payment.objects.count() == 1


def test_words_of_a_usual_answer_stay() -> None:
    """Stored answers cannot be read without them. After a change, read both for IDEMPOTENCY_TTL_HOURS."""
    assert zlib.adler32(USUAL_ANSWER) == 373193729


@pytest.mark.parametrize("path", ["/v1/qr-codes", "/Thai/qr-codes"])
def test_all_path_forms_share_idempotency_keys(shop: Shop, path: str) -> None:
    first = shop.post(PATH, qr_request(), key="order-1")
    assert shop.post(path, qr_request(), key="order-1").content == first.content


def test_idempotent_replay_ignores_field_order_and_white_space(shop: Shop) -> None:
    first = shop.post(PATH, '{"amount":150000,"currency":"THB"}', key="k")
    assert shop.post(PATH, '{ "currency": "THB",\n "amount": 150000 }', key="k").content == first.content


@pytest.mark.parametrize("minutes", ["15.0", "1.5e1"])
def test_idempotent_replay_ignores_how_an_integer_is_written(shop: Shop, minutes: str) -> None:
    body = '{"amount":150000,"currency":"THB","expiry_minutes":%s}'
    first = shop.post(PATH, body % "15", key="k")
    again = shop.post(PATH, body % minutes, key="k")
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")


def test_amount_with_a_decimal_point_is_no_repeat_of_the_request(shop: Shop) -> None:
    shop.post(PATH, '{"amount":150000,"currency":"THB"}', key="k")
    refused = shop.post(PATH, '{"amount":150000.0,"currency":"THB"}', key="k")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "idempotency_key_reused")


@pytest.mark.parametrize("amount", ["1e20", "-1e300", "1e400", "0.5"])
def test_number_that_is_no_integer_of_an_amount_is_refused_with_a_key_too(shop: Shop, amount: str) -> None:
    refused = shop.post(PATH, f'{{"amount":{amount},"currency":"THB"}}', key="k")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_amount")


@pytest.mark.parametrize(
    "other",
    [
        qr_request(amount=150_001),
        qr_request(expiry_minutes=15),
        qr_request(unknown=1),
        {"amount": "wrong"},
        {},
    ],
)
def test_different_request_under_the_idempotency_key_is_refused_even_if_invalid(
    shop: Shop, other: dict[str, Any]
) -> None:
    shop.post(PATH, qr_request(), key="k")
    refused = shop.post(PATH, other, key="k")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "idempotency_key_reused")
    assert refused.json()["error"]["type"] == "idempotency_error"
    assert Payment.objects.count() == 1


def test_different_operation_under_the_idempotency_key_is_refused(shop: Shop) -> None:
    code = shop.post(PATH, qr_request(), key="k").json()
    refused = shop.post(f"{PATH}/{code['qr_code_id']}/expire", key="k")
    assert refused.json()["error"]["code"] == "idempotency_key_reused"


def test_expiring_a_qr_code_is_replayed_under_the_idempotency_key(shop: Shop) -> None:
    path = f"{PATH}/{shop.qr_code()['qr_code_id']}/expire"
    first = shop.post(path, key="end")
    assert shop.post(path, key="end").content == first.content
    assert shop.post(path).json()["error"]["code"] == "qr_code_not_expirable"


def test_merchants_do_not_share_idempotency_keys(shop: Shop, other_shop: Shop) -> None:
    ours, theirs = (each.post(PATH, qr_request(), key="k").json() for each in (shop, other_shop))
    assert ours["payment_id"] != theirs["payment_id"]


def test_refused_request_leaves_the_idempotency_key_unused(shop: Shop) -> None:
    assert shop.post(PATH, qr_request(amount=1), key="k").status_code == 400
    assert not IdempotencyKey.objects.exists()
    assert shop.post(PATH, qr_request(), key="k").status_code == 200


@pytest.mark.django_db(transaction=True)  # the wake-up comes after the commit
def test_failed_wakeup_after_the_commit_does_not_fail_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    deliveries = []

    def fail() -> None:
        deliveries.append(Delivery.objects.count())
        raise OSError

    shop = open_shop("Somtam House")
    make_endpoint(shop, events=["payment.pending"])
    monkeypatch.setattr(wakeup, "wake", fail)
    first = shop.post(PATH, qr_request(), key="k")
    assert (first.status_code, deliveries) == (200, [1])
    assert shop.post(PATH, qr_request(), key="k").content == first.content


@pytest.mark.django_db(transaction=True)  # the taker-over first meets the expired row as a conflict
def test_idempotency_key_expires_after_exactly_24_hours(noon: datetime) -> None:
    shop = open_shop("Somtam House")
    with time_machine.travel(noon, tick=False) as clock:
        first = shop.post(PATH, qr_request(), key="k").json()
        clock.move_to(noon + timedelta(hours=24) - timedelta(milliseconds=1))
        assert shop.post(PATH, qr_request(), key="k").json() == first
        clock.move_to(noon + timedelta(hours=24))
        second = shop.post(PATH, qr_request(amount=100), key="k")
        assert second.status_code == 200
        assert shop.post(PATH, qr_request(amount=100), key="k").content == second.content
    assert Payment.objects.count() == 2


def test_idempotency_key_of_255_thai_characters_is_accepted(shop: Shop) -> None:
    thai = "ก" * 255
    as_sent = thai.encode().decode("latin-1")  # how a server hands over a header
    assert shop.post(PATH, qr_request(), key=as_sent).status_code == 200
    assert IdempotencyKey.objects.get().key == thai


@pytest.mark.parametrize("key", ["", " ", "x" * 256, "a\x00b", "a\x7fb", "\xff\xfe"])
def test_invalid_idempotency_key_is_refused(shop: Shop, key: str) -> None:
    refused = shop.post(PATH, qr_request(), key=key)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_idempotency_key")
    assert not Payment.objects.exists()


def test_idempotency_key_is_ignored_on_get(shop: Shop) -> None:
    assert shop.get("/Thai/v1/payments", **{"Idempotency-Key": ""}).status_code == 200


def test_deletion_removes_only_expired_idempotency_keys(shop: Shop, noon: datetime) -> None:
    with time_machine.travel(noon, tick=False) as clock:
        shop.post(PATH, qr_request(), key="old")
        clock.move_to(noon + timedelta(hours=23))
        shop.post(PATH, qr_request(), key="young")
        assert services.delete_expired(now=noon + timedelta(hours=24), batch=1) == 1
    assert IdempotencyKey.objects.get().key == "young"


def test_stored_response_of_an_idempotency_key_is_sealed(shop: Shop) -> None:
    shop.post(PATH, qr_request(client_bank_account="1234567890"), key="k")
    stored = bytes(IdempotencyKey.objects.get().body_sealed)
    assert stored.startswith(vault.PREFIX_BYTES) and b"1234567890" not in stored
