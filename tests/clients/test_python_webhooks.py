"""`unwrap` accepts genuine webhooks and refuses others. The library `standardwebhooks` signs them."""

import base64
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import thaiqr
from standardwebhooks import Webhook
from thaiqr import PaymentEvent, SignatureError, UnexpectedResponseError, UnknownEvent, webhooks

from tests.clients import openapi

SECRET = "whsec_" + base64.b64encode(b"n" * 32).decode()
OLD = "whsec_" + base64.b64encode(b"o" * 32).decode()
FREE_TEXT = "ร้านส้มตำ, not base64"


def example(event: str = "payment.succeeded") -> dict[str, Any]:
    content = openapi.DOCUMENT["webhooks"][event]["post"]["requestBody"]["content"]["application/json"]
    shown: dict[str, Any] = content["example"]
    return shown


BODY = json.dumps(example(), ensure_ascii=False).encode()


def signed(body: bytes = BODY, *, secret: str = SECRET, late: float = 0.0) -> dict[str, str]:
    at = datetime.now(UTC) - timedelta(seconds=late)
    return {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign("evt_1", at, body.decode()),
    }


def test_genuine_webhook_is_read_as_a_typed_event() -> None:
    event = webhooks.unwrap(BODY, signed(), SECRET)
    assert isinstance(event, PaymentEvent)
    assert (event.event, event.data.status) == ("payment.succeeded", "succeeded")
    assert event.data.raw == example()["data"]
    assert event.timestamp.tzinfo is not None


@pytest.mark.parametrize("secret", [SECRET, FREE_TEXT])
def test_message_that_a_shop_signs_for_its_tests_is_genuine(secret: str) -> None:
    data = example()["data"] | {"reference": "ใบสั่ง 7"}
    body, headers = webhooks.signed_message("payment.succeeded", data, secret, event_id="evt_7")
    event = webhooks.unwrap(body, headers, secret)
    assert (event.event, event.event_id, event.raw["data"]) == ("payment.succeeded", "evt_7", data)
    as_library_takes_it = "whsec_" + base64.b64encode(secret.encode()).decode()
    Webhook(secret if secret == SECRET else as_library_takes_it).verify(body, headers)
    with pytest.raises(SignatureError):
        webhooks.unwrap(body, headers, OLD)


def test_message_for_tests_can_be_signed_late() -> None:
    late = webhooks.signed_headers(BODY, message_id="evt_1", secret=SECRET, timestamp=int(time.time()) - 360)
    with pytest.raises(SignatureError, match="old"):
        webhooks.unwrap(BODY, late, SECRET)


def test_every_event_of_the_openapi_document_is_read() -> None:
    for event in thaiqr.models.EVENTS:
        body = json.dumps(example(event)).encode()
        assert type(webhooks.unwrap(body, signed(body), SECRET)) is thaiqr.models.EVENTS[event]


def test_event_of_a_newer_service_is_read_with_its_fields() -> None:
    newer = example() | {"event": "payment.split", "more": 1, "data": {"anything": [1]}}
    body = json.dumps(newer).encode()
    event = webhooks.unwrap(body, signed(body), SECRET)
    assert isinstance(event, UnknownEvent)
    assert (event.event, event.data, event.raw["more"]) == ("payment.split", {"anything": [1]}, 1)


def test_body_as_text_and_header_names_in_any_case_are_accepted() -> None:
    headers = {name.title(): value for name, value in signed().items()}
    assert webhooks.unwrap(BODY.decode(), headers, SECRET).event == "payment.succeeded"


@pytest.mark.parametrize("order", [1, -1])
def test_one_valid_signature_among_several_is_enough(order: int) -> None:
    both = [signed()["webhook-signature"], signed(secret=OLD)["webhook-signature"], "v1a,AAAA"][::order]
    headers = signed() | {"webhook-signature": " ".join(both)}
    assert webhooks.unwrap(BODY, headers, SECRET)
    assert webhooks.unwrap(BODY, headers, OLD)


def test_free_text_secret_signs_with_its_bytes() -> None:
    as_library_takes_it = "whsec_" + base64.b64encode(FREE_TEXT.encode()).decode()
    assert webhooks.unwrap(BODY, signed(secret=as_library_takes_it), FREE_TEXT)


@pytest.mark.parametrize("body", [BODY + b" ", BODY.replace(b"150000", b"150001"), BODY[:-1], b""])
def test_changed_body_is_refused(body: bytes) -> None:
    assert body != BODY
    with pytest.raises(SignatureError):
        webhooks.unwrap(body, signed(), SECRET)


@pytest.mark.parametrize("late", [360, -360, 86_400])
def test_message_outside_the_tolerance_is_refused(late: float) -> None:
    with pytest.raises(SignatureError, match="old"):
        webhooks.unwrap(BODY, signed(late=late), SECRET)
    assert webhooks.unwrap(BODY, signed(late=late), SECRET, timedelta(days=2))


@pytest.mark.parametrize("name", webhooks.HEADERS)
@pytest.mark.parametrize("value", [None, "", "ก", "x", "v1", "v1,", "-1", "NaN", "9" * 400, "๑๒๓", "\ud800"])
def test_missing_or_malformed_header_is_refused(name: str, value: str | None) -> None:
    headers = signed()
    del headers[name]
    if value is not None:
        headers[name] = value
    with pytest.raises(SignatureError):
        webhooks.unwrap(BODY, headers, SECRET)


def test_message_signed_with_another_secret_is_refused() -> None:
    with pytest.raises(SignatureError, match="no signature"):
        webhooks.unwrap(BODY, signed(secret=OLD), SECRET)


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_*"])
def test_secret_with_which_anybody_could_sign_is_refused(secret: str) -> None:
    with pytest.raises(ValueError, match="secret"):
        webhooks.unwrap(BODY, signed(), secret)


def test_headers_as_frameworks_have_them_are_accepted() -> None:
    pairs = [(name.encode(), value.encode()) for name, value in signed().items()]
    given: list[Any] = [pairs, dict(pairs), {name: [value] for name, value in signed().items()}]
    for headers in given:
        assert webhooks.unwrap(BODY, headers, SECRET).event == "payment.succeeded"
    for body in (bytearray(BODY), memoryview(BODY), BODY.decode("ascii", "surrogateescape")):
        assert webhooks.unwrap(body, signed(), SECRET)  # type: ignore[arg-type]


@pytest.mark.parametrize("headers", [None, 17, "webhook-id: evt_1", ["webhook-id"]])
def test_headers_that_are_none_are_a_mistake_of_the_receiver(headers: Any) -> None:
    with pytest.raises(TypeError, match="headers"):
        webhooks.unwrap(BODY, headers, SECRET)


@pytest.mark.parametrize("body", [example(), None, [1]])
def test_parsed_body_is_a_mistake_of_the_receiver(body: Any) -> None:
    with pytest.raises(TypeError, match="before anything parses them"):
        webhooks.unwrap(body, signed(), SECRET)


@pytest.mark.parametrize("name", webhooks.HEADERS)
@pytest.mark.parametrize("value", [None, 17, [], ["a", "b"]])
def test_header_that_is_no_text_is_refused(name: str, value: Any) -> None:
    with pytest.raises(SignatureError):
        webhooks.unwrap(BODY, signed() | {name: value}, SECRET)


@pytest.mark.parametrize("secret", [None, 17, b"whsec_", "whsec_ร้าน"])
def test_missing_secret_is_named_before_the_message_is_looked_at(secret: Any) -> None:
    with pytest.raises(ValueError, match="secret"):
        webhooks.unwrap(BODY, {}, secret)


def test_secret_of_another_type_is_not_called_missing() -> None:
    with pytest.raises(ValueError, match="must be text that begins with whsec_, not bytes"):
        webhooks.unwrap(BODY, {}, b"whsec_")  # type: ignore[arg-type]


@pytest.mark.parametrize("body", [b"no JSON", b"[]", b'{"event": "payment.succeeded"}'])
def test_genuine_message_that_is_no_event_is_an_error_of_its_own(body: bytes) -> None:
    with pytest.raises(UnexpectedResponseError):
        webhooks.unwrap(body, signed(body), SECRET)


def test_our_signature_is_that_of_the_standard_library() -> None:
    now = int(time.time())
    ours = webhooks.sign(BODY, message_id="evt_1", timestamp=now, secret=SECRET)
    assert ours == Webhook(SECRET).sign("evt_1", datetime.fromtimestamp(now, UTC), BODY.decode())
