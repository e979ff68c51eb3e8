"""A merchant registers, reads and deletes webhooks. A URL must answer before it is accepted."""

import json
from typing import Any

import pytest
from pytest_django import Settings
from standardwebhooks import Webhook

from tests.conftest import Shop, open_shop
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.api_calls import error_code
from tests.webhooks.builders import PAYMENT_SUCCEEDED, SECRET
from webhooks import probes, signing
from webhooks.http import client
from webhooks.models import Endpoint, EventType

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]

PATH = "/Thai/v1/webhooks"
UNREACHABLE_URL = {
    "error": {
        "code": "invalid_url",
        "message": "The URL must be a public https address, and the endpoint must answer a POST request.",
        "type": "validation_error",
        "param": "url",
    }
}


def register(shop: Shop, url: Any, **fields: Any) -> Any:
    return shop.post(PATH, {"url": url, "events": [PAYMENT_SUCCEEDED]} | fields)


@pytest.fixture
def no_probe(settings: Settings) -> None:
    settings.WEBHOOK_PROBE = "off"


def test_created_webhook_is_returned_without_secret(shop: Shop, receiver: Receiver) -> None:
    answer = register(shop, receiver.url(), events=["payment.failed", PAYMENT_SUCCEEDED], secret=SECRET)
    assert answer.status_code == 200
    webhook = answer.json()
    asked_for = {"webhook_id", "url", "events", "status", "created_at"}
    assert set(webhook) == asked_for | {"disabled_reason", "verification", "last_ping_status", "health"}
    assert webhook["webhook_id"].startswith("wh_")
    assert (webhook["url"], webhook["status"]) == (receiver.url(), "active")
    assert webhook["events"] == ["payment.failed", PAYMENT_SUCCEEDED]
    assert SECRET not in answer.content.decode()


@pytest.mark.usefixtures("no_probe")
def test_every_event_of_the_catalogue_can_be_subscribed_to(shop: Shop) -> None:
    assert len(EventType) == 14
    answer = register(shop, "https://shop.example/hook", events=list(EventType))
    assert answer.json()["events"] == list(EventType)


@pytest.mark.usefixtures("no_probe")
def test_repeated_event_type_of_a_webhook_counts_once(shop: Shop) -> None:
    answer = register(
        shop, "https://shop.example/hook", events=[PAYMENT_SUCCEEDED, "refund.failed", PAYMENT_SUCCEEDED]
    )
    assert answer.json()["events"] == [PAYMENT_SUCCEEDED, "refund.failed"]


@pytest.mark.parametrize(
    "events",
    [
        None,
        [],
        PAYMENT_SUCCEEDED,
        {},
        7,
        [7],
        [None],
        [[PAYMENT_SUCCEEDED]],
        ["payment.paid"],
        ["Payment.Succeeded"],
        ["webhook.ping"],
        [""],
    ],
)
def test_webhook_with_unknown_event_type_is_refused(shop: Shop, events: Any) -> None:
    assert error_code(register(shop, "https://shop.example/hook", events=events)) == (400, "invalid_events")


def test_webhook_without_events_is_refused(shop: Shop) -> None:
    assert error_code(shop.post(PATH, {"url": "https://shop.example/hook"})) == (400, "invalid_events")


@pytest.mark.usefixtures("no_probe")
def test_generated_webhook_secret_is_sealed_in_the_database(shop: Shop) -> None:
    register(shop, "https://shop.example/hook")
    endpoint = Endpoint.objects.get()
    assert len(signing.key_bytes(endpoint.secret)) == 32
    assert endpoint.secret not in endpoint.secret_sealed


@pytest.mark.usefixtures("no_probe")
@pytest.mark.parametrize("secret", [SECRET, "x" * 16, "ความลับของร้านส้มตำ", "x" * 255])
def test_free_text_webhook_secret_is_accepted(shop: Shop, secret: str) -> None:
    assert register(shop, "https://shop.example/hook", secret=secret).status_code == 200
    assert Endpoint.objects.get().secret == secret


@pytest.mark.parametrize(
    "secret", ["", 7, [], "whsec_", "whsec_my-secret", "whsec_c2hvcnQ=", "x" * 15, "x" * 256]
)
def test_webhook_with_malformed_secret_is_refused(shop: Shop, secret: Any) -> None:
    answer = register(shop, "https://shop.example/hook", secret=secret)
    assert error_code(answer) == (400, "invalid_secret")


def test_webhook_probe_is_one_signed_ping(shop: Shop, receiver: Receiver) -> None:
    webhook = register(shop, receiver.url(), secret=SECRET).json()
    (ping,) = receiver.requests
    message = Webhook(SECRET).verify(ping.body, ping.headers)
    assert ping.method == "POST"
    assert message["event"] == "webhook.ping"
    assert message["data"] == {"webhook_id": webhook["webhook_id"]}


@pytest.mark.parametrize("status", [200, 204, 302, 401, 404, 405, 500])
def test_probe_accepts_any_http_status(shop: Shop, receiver: Receiver, status: int) -> None:
    receiver.on("/hook", Reply(status=status, body=b""))
    answer = register(shop, receiver.url())
    assert (answer.status_code, answer.json()["last_ping_status"]) == (200, status)
    assert len(receiver.requests) == 1


def test_probe_setting_2xx_requires_2xx(shop: Shop, receiver: Receiver, settings: Settings) -> None:
    settings.WEBHOOK_PROBE = "2xx"
    receiver.on("/hook", Reply(status=404), Reply(status=204, body=b""))
    assert refusal_of(register(shop, receiver.url())) == (UNREACHABLE_URL, "the endpoint answered 404")
    assert register(shop, receiver.url()).status_code == 200


# Missing, malformed, forbidden and unreachable URLs.
BAD_URLS: list[Any] = [
    *(None, 7, [], "", "shop.example", "https://", "https://u:p@shop.example/", "ftp://shop.example/"),
    *("http://shop.example/", "https://169.254.169.254/", "https://10.0.0.1/", "https://[::1]:8000/"),
    *("http://127.0.0.1:1/", "https://shop.invalid/", "https://shop.example/" + "x" * 2048),
]


@pytest.mark.parametrize("url", BAD_URLS)
def test_all_webhook_url_errors_give_the_same_message_and_a_reason(shop: Shop, url: Any) -> None:
    answer = register(shop, url)
    error, reason = refusal_of(answer)
    assert (answer.status_code, error) == (422, UNREACHABLE_URL)
    assert reason
    assert not Endpoint.objects.exists()


@pytest.mark.parametrize(
    "url",
    ["https://169.254.169.254/", "https://10.0.0.1/", "https://[::1]:8443/", "https://shop.invalid/"],
)
def test_live_merchant_gets_no_reason_that_the_network_tells(url: str) -> None:
    assert refusal_of(register(open_shop("Big Shop", mode="live"), url)) == (UNREACHABLE_URL, None)


@pytest.mark.parametrize("mode", ["test", "live"])
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (7, "must be a string; received a number"),
        ("ftp://shop.example/", "the scheme is not https"),
        ("https://u:p@shop.example/", "the URL has credentials"),
        (
            "https://shop.example?mail=a@b.example",
            "the query has an @ and follows the host: write a / before the ?",
        ),
        (
            "https://my_shop.example/hook",
            "the host name has another character than letters, digits, hyphens and dots",
        ),
        ("https://8.8.8.8:3000/", "the port is not one of those that are allowed: 443, 8443"),
        ("https://shop.example:abc/", "the port is not one of those that are allowed: 443, 8443"),
        ("https://127.0.0.1:99999/", "the port is not one of those that are allowed: 443, 8443"),
        ("https://[::1]:70000", "the port is not one of those that are allowed: 443, 8443"),
        ("https://shop.example/#top", "the URL is malformed or has a fragment"),
    ],
)
def test_every_merchant_reads_what_is_wrong_in_a_webhook_url(mode: str, url: Any, reason: str) -> None:
    assert refusal_of(register(open_shop("Shop", mode=mode), url)) == (UNREACHABLE_URL, reason)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://169.254.169.254/", "the address is not public"),
        ("https://shop.invalid/", "the host name has no address in DNS"),
        ("http://127.0.0.1:1/", "the connection was refused"),
    ],
)
def test_test_merchant_reads_why_a_webhook_url_is_refused(shop: Shop, url: Any, reason: str) -> None:
    assert refusal_of(register(shop, url)) == (UNREACHABLE_URL, reason)


def refusal_of(answer: Any) -> tuple[Any, str | None]:
    """The error without its detail, and the detail."""
    body = answer.json()
    return body, body["error"].pop("detail", None)


def test_webhook_without_url_is_refused_like_an_invalid_url(shop: Shop) -> None:
    answer = shop.post(PATH, {"events": [PAYMENT_SUCCEEDED]})
    assert (answer.status_code, refusal_of(answer)) == (422, (UNREACHABLE_URL, "is required"))


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(closes=True), "the connection was closed before an answer"),
        (Reply(hangs=True), "the endpoint did not answer within 5 s"),
    ],
)
@pytest.mark.slow
def test_webhook_endpoint_that_does_not_answer_is_refused(
    shop: Shop, receiver: Receiver, reply: Reply, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "TIMEOUTS", client.Timeouts(connect=0.3, total=0.3))
    receiver.on("/hook", reply)
    answer = register(shop, receiver.url())
    assert (answer.status_code, refusal_of(answer)) == (422, (UNREACHABLE_URL, reason))


@pytest.mark.parametrize("probe", ["off", "reachable"])
def test_live_merchant_cannot_register_loopback_url(
    receiver: Receiver, settings: Settings, probe: str
) -> None:
    settings.WEBHOOK_PROBE = probe
    live = open_shop("Big Shop", mode="live")
    assert error_code(register(live, receiver.url())) == (422, "invalid_url")
    assert receiver.requests == []


@pytest.mark.usefixtures("no_probe")
def test_webhook_without_probe_gets_an_address_check_only(shop: Shop) -> None:
    assert register(shop, "https://shop.invalid/hook").status_code == 200
    assert error_code(register(shop, "https://10.0.0.1/hook")) == (422, "invalid_url")
    assert Endpoint.objects.get().last_ping_status is None


def test_repeated_creation_under_an_idempotency_key_does_not_probe(shop: Shop, receiver: Receiver) -> None:
    body = {"url": receiver.url(), "events": [PAYMENT_SUCCEEDED]}
    first = shop.post(PATH, body, key="once")
    receiver.on("/hook", Reply(closes=True))
    second = shop.post("/v1/webhooks", body, key="once")
    assert (second.status_code, second.content) == (200, first.content)
    assert second.headers["Idempotent-Replayed"] == "true"
    assert len(receiver.requests) == Endpoint.objects.count() == 1


@pytest.mark.usefixtures("no_probe")
@pytest.mark.slow
def test_webhooks_of_the_merchant_are_listed_newest_first(shop: Shop, other_shop: Shop) -> None:
    register(other_shop, "https://rival.example/hook")
    made = [register(shop, f"https://shop.example/{number}").json() for number in range(3)]
    answer = shop.get(f"{PATH}?limit=2")
    assert answer.status_code == 200
    page = answer.json()
    assert (page["total"], page["limit"], page["offset"]) == (3, 2, 0)
    assert len(page["webhooks"]) == 2
    rest = shop.get("/v1/webhooks?offset=2").json()["webhooks"]
    listed = page["webhooks"] + rest
    assert sorted(map(json.dumps, listed)) == sorted(map(json.dumps, made))
    assert [each["created_at"] for each in listed] == sorted(
        (each["created_at"] for each in made), reverse=True
    )


@pytest.mark.usefixtures("no_probe")
def test_webhook_of_another_merchant_is_not_found(shop: Shop, other_shop: Shop) -> None:
    webhook = register(shop, "https://shop.example/hook").json()
    path = f"{PATH}/{webhook['webhook_id']}"
    assert shop.get(path).json() == webhook
    assert error_code(other_shop.get(path)) == (404, "webhook_not_found")
    assert error_code(other_shop.delete(path)) == (404, "webhook_not_found")
    assert error_code(shop.get(f"{PATH}/wh_nothing")) == (404, "webhook_not_found")


@pytest.mark.usefixtures("no_probe")
def test_deleted_webhook_is_hidden_from_merchant_and_shown_to_staff(shop: Shop) -> None:
    webhook_id = register(shop, "https://shop.example/hook").json()["webhook_id"]
    answer = shop.delete(f"{PATH}/{webhook_id}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert error_code(shop.get(f"{PATH}/{webhook_id}")) == (404, "webhook_not_found")
    assert error_code(shop.delete(f"{PATH}/{webhook_id}")) == (404, "webhook_not_found")
    assert shop.get(PATH).json()["total"] == 0
    assert Endpoint.objects.get().deleted_at is not None
