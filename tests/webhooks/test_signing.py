import base64
import hashlib
import hmac
import json
import time

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from webhooks import signing

BODY = '{"event":"payment.succeeded","data":{"reference":"ใบสั่ง 7"}}'.encode()
NOW = 1_770_000_000
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def whsec(length: int) -> str:
    return "whsec_" + base64.b64encode(bytes(range(length))).decode()


def signed(*secrets: str, timestamp: int = NOW, body: bytes = BODY) -> dict[str, str]:
    return signing.headers(secrets=secrets, message_id="evt_1", timestamp=timestamp, body=body)


def test_signature_equals_the_standard_webhooks_example() -> None:
    signature = signing.sign(
        secrets=[SECRET],
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1_614_265_330,
        body=b'{"test": 2432232314}',
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_new_webhook_secret_has_32_random_bytes() -> None:
    first, second = signing.new_secret(), signing.new_secret()
    assert len(signing.key_bytes(first)) == 32
    assert first != second


@pytest.mark.parametrize("length", [24, 32, 64])
def test_whsec_secret_is_decoded_to_the_signing_key(length: int) -> None:
    assert signing.key_bytes(whsec(length)) == bytes(range(length))


@pytest.mark.parametrize("text", ["my-secret", "ความลับ", "WHSEC_abc", " ", "TWZLUTly"])
def test_free_text_secret_is_used_as_utf8_signing_key(text: str) -> None:
    assert signing.key_bytes(text) == text.encode()


def test_malformed_whsec_secret_is_refused() -> None:
    for secret in [
        "",
        "\ud800",
        "whsec_",
        "whsec_my-secret-hello",
        whsec(23),
        whsec(65),
        whsec(32).rstrip("="),
        whsec(32) + "=",
        whsec(32) + "\n",
        whsec(24).replace("A", " A", 1),
        "whsec_" + base64.urlsafe_b64encode(b"\xff" * 32).decode(),
        "whsec_" + "A" * 42 + "B=",
        "whsec_ก" + "A" * 40,
    ]:
        with pytest.raises(signing.BadSecret):
            signing.key_bytes(secret)


def test_signing_without_a_secret_is_refused() -> None:
    with pytest.raises(signing.BadSecret):
        signed()


def test_webhook_message_id_with_a_dot_is_refused() -> None:
    with pytest.raises(ValueError, match="dot"):
        signing.sign(secrets=[SECRET], message_id="evt.1", timestamp=NOW, body=b"")


def test_standard_webhooks_library_verifies_with_a_generated_secret() -> None:
    secret = signing.new_secret()
    headers = signed(secret, timestamp=int(time.time()))
    assert Webhook(secret).verify(BODY, headers) == json.loads(BODY)


def test_standard_webhooks_library_verifies_with_a_free_text_secret_as_base64() -> None:
    headers = signed("my-secret", timestamp=int(time.time()))
    Webhook("whsec_" + base64.b64encode(b"my-secret").decode()).verify(BODY, headers)


@pytest.mark.parametrize("verifier", [whsec(32), whsec(48)])
def test_signature_header_holds_one_signature_per_secret(verifier: str) -> None:
    headers = signed(whsec(48), whsec(32), timestamp=int(time.time()))
    assert len(headers["webhook-signature"].split(" ")) == 2
    Webhook(verifier).verify(BODY, headers)


def test_standard_webhooks_library_rejects_changed_body_and_foreign_secret() -> None:
    headers = signed(whsec(32), timestamp=int(time.time()))
    with pytest.raises(WebhookVerificationError):
        Webhook(whsec(32)).verify(BODY + b" ", headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(whsec(48)).verify(BODY, headers)


def test_webhook_signature_equals_hmac_sha256_of_id_timestamp_and_body() -> None:
    digest = hmac.new(bytes(range(32)), b"evt_1.1770000000." + BODY, hashlib.sha256).digest()
    assert signed(whsec(32)) == {
        "webhook-id": "evt_1",
        "webhook-timestamp": "1770000000",
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }
