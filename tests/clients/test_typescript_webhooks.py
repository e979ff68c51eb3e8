"""`unwrap` in TypeScript accepts genuine webhooks and refuses others. `standardwebhooks` signs them."""

import base64
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.clients import openapi, typescript_package as package
from tests.clients.typescript_package import Case, Outcome

pytestmark = pytest.mark.slow
SECRET = "whsec_" + base64.b64encode(b"n" * 32).decode()
OLD = "whsec_" + base64.b64encode(b"o" * 32).decode()
FREE_TEXT = "ร้านส้มตำ, not base64"
HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")
MALFORMED = [None, "", "ก", "x", "v1", "v1,", "v1,!", "v1, ", "-1", "NaN", "9" * 400, "๑๒๓", ["1", "2"]]
NO_SECRETS = ["", "whsec_", "whsec_*"]
NO_EVENTS = ["no JSON", "[]", "null", '{"event": "payment.succeeded"}']


def example(event: str = "payment.succeeded") -> dict[str, Any]:
    content = openapi.DOCUMENT["webhooks"][event]["post"]["requestBody"]["content"]["application/json"]
    shown: dict[str, Any] = content["example"]
    return shown


BODY = json.dumps(example() | {"note": "ส้มตำ"}, ensure_ascii=False)


def signed(body: str = BODY, *, secret: str = SECRET, late: float = 0.0) -> dict[str, Any]:
    at = datetime.now(UTC) - timedelta(seconds=late)
    return {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign("evt_1", at, body),
    }


def unwrap(body: str = BODY, headers: Any = None, secret: str = SECRET, **options: Any) -> Case:
    given = signed(body) if headers is None else headers
    return Case("static.unwrap", [body, given, secret, options])


def both(order: int) -> dict[str, Any]:
    several = [signed()["webhook-signature"], signed(secret=OLD)["webhook-signature"], "v1a,AAAA"]
    return signed() | {"webhook-signature": " ".join(several[::order])}


def without(name: str, value: Any) -> dict[str, Any]:
    return {each: known for each, known in (signed() | {name: value}).items() if known is not None}


EVENTS = list(openapi.DOCUMENT["webhooks"])
NEWER = json.dumps(example() | {"event": "payment.split", "more": 1, "data": {"anything": [1]}})
AS_LIBRARY_TAKES_IT = "whsec_" + base64.b64encode(FREE_TEXT.encode()).decode()
NOW = int(time.time())
DATA, EVENT_7 = example()["data"] | {"reference": "ใบสั่ง 7"}, {"eventId": "evt_7"}


def accepted() -> dict[str, Case]:
    return {
        "genuine": unwrap(),
        "method-of-the-client": Case("webhooks.unwrap", [BODY, signed(), SECRET]),
        "newer": unwrap(NEWER),
        "any-case": unwrap(headers={name.title(): value for name, value in signed().items()}),
        "several": unwrap(headers=both(1)),
        "several-backwards": unwrap(headers=both(-1)),
        "several-old": unwrap(headers=both(1), secret=OLD),
        "free-text": unwrap(headers=signed(secret=AS_LIBRARY_TAKES_IT), secret=FREE_TEXT),
        "lists": unwrap(headers={name: [value] for name, value in signed().items()}),
        "pairs": unwrap(headers=[[name.title(), value] for name, value in signed().items()]),
        "tolerant": unwrap(headers=signed(late=86_400), tolerance=100_000),
        **{event: unwrap(json.dumps(example(event))) for event in EVENTS},
    }


def refused() -> dict[str, Case]:
    changed = [BODY + " ", BODY.replace("150000", "150001"), BODY[:-1], ""]
    return {
        **{f"late-{late}": unwrap(headers=signed(late=late)) for late in (310, -900, 86_400)},
        "strict": unwrap(headers=signed(late=60), tolerance=10),
        "no-tolerance": unwrap(tolerance="NaN"),
        "other-secret": unwrap(headers=signed(secret=OLD)),
        **{f"changed-{number}": unwrap(body, signed()) for number, body in enumerate(changed)},
        **{
            f"{name}-{number}": unwrap(headers=without(name, value))
            for name in HEADERS
            for number, value in enumerate(MALFORMED)
        },
    }


def others() -> dict[str, Case]:
    return {
        **{f"secret-{secret}": unwrap(secret=secret) for secret in NO_SECRETS},
        **{f"body-{body}": unwrap(body) for body in NO_EVENTS},
        "no-secret": Case("static.unwrap", [BODY, signed()]),
        "no-headers": Case("static.unwrap", [BODY, None, SECRET]),
        "parsed-body": Case("static.unwrap", [example(), signed(), SECRET]),
        **{
            f"message-{secret}": Case("static.signedMessage", ["payment.succeeded", DATA, secret, EVENT_7])
            for secret in (SECRET, AS_LIBRARY_TAKES_IT)
        },
        "sign": Case("static.sign", [BODY, {"messageId": "evt_1", "timestamp": NOW, "secret": SECRET}]),
    }


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    """The messages are signed now, not when the tests are collected: they are valid for five minutes."""
    return package.carry_out(accepted() | refused() | others())


@pytest.mark.parametrize("name", accepted())
def test_genuine_message_is_read(outcomes: dict[str, Outcome], name: str) -> None:
    assert outcomes[name].error is None
    assert outcomes[name].value == json.loads(accepted()[name].arguments[0])


@pytest.mark.parametrize("name", refused())
def test_message_that_is_not_genuine_or_too_old_is_refused(outcomes: dict[str, Outcome], name: str) -> None:
    assert outcomes[name].kind == "SignatureError"


@pytest.mark.parametrize(
    "name", ["parsed-body", "no-secret", "no-headers", *(f"secret-{secret}" for secret in NO_SECRETS)]
)
def test_mistake_of_the_receiver_is_no_forgery(outcomes: dict[str, Outcome], name: str) -> None:
    assert outcomes[name].kind == "TypeError"


@pytest.mark.parametrize("body", NO_EVENTS)
def test_genuine_message_that_is_no_event_is_an_error_of_its_own(
    outcomes: dict[str, Outcome], body: str
) -> None:
    assert outcomes[f"body-{body}"].kind == "UnexpectedResponseError"


def test_our_signature_is_that_of_the_standard_library(outcomes: dict[str, Outcome]) -> None:
    theirs = Webhook(SECRET).sign("evt_1", datetime.fromtimestamp(NOW, UTC), BODY)
    assert outcomes["sign"].value == theirs


@pytest.mark.parametrize("secret", [SECRET, AS_LIBRARY_TAKES_IT])
def test_message_that_a_shop_signs_for_its_tests_is_genuine(
    outcomes: dict[str, Outcome], secret: str
) -> None:
    signed = outcomes[f"message-{secret}"].value
    read = Webhook(secret).verify(signed["body"], signed["headers"])
    assert (read["event"], read["event_id"], read["data"]) == ("payment.succeeded", "evt_7", DATA)
    assert signed["headers"]["webhook-id"] == "evt_7"
