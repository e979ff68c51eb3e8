"""The API of the payment service over HTTP, and the signatures of its messages. Nothing here knows Odoo."""

import base64
import hashlib
import hmac
import json
import logging
import time

import requests

TIMEOUT_SECONDS = 10
TRIES = 2
# How far the clocks may differ, which limits replays.
TOLERANCE_SECONDS = 300

_logger = logging.getLogger(__name__)


class ServiceError(Exception):
    """What the service refused, or that it did not answer. Its text is the service's own sentence."""

    def __init__(self, status, code, text):
        super().__init__(text)
        self.status, self.code = status, code

    @property
    def is_open(self):
        """Whether the service may have done what was asked: the same request finds out."""
        return (
            self.status in (0, 408, 429) or self.status >= 500 or self.code == "idempotency_key_in_progress"
        )


def send(address, key, method, path, body=None):
    """Send a request, and once more if no answer came. Raises ServiceError.

    A POST has a digest of its body as key, so what was asked for twice in the same words is done once.
    """
    headers = {"Authorization": f"Bearer {key}", "User-Agent": "thai-qr-payments-odoo"}
    content = None
    if body is not None:
        content = json.dumps(body, sort_keys=True)
        headers["Content-Type"] = "application/json"
        headers["Idempotency-Key"] = "odoo-" + hashlib.sha256(f"{path} {content}".encode()).hexdigest()
    tries = 0
    while True:
        try:
            return _answer(method, address + path, headers, content)
        except ServiceError as error:
            # Never keys or bodies.
            _logger.warning("%s %s: %d %s", method, path.partition("?")[0], error.status, error.code)
            tries += 1
            if tries == TRIES or not error.is_open:
                raise


def _answer(method, url, headers, content):
    try:
        response = requests.request(
            method, url, headers=headers, data=content, timeout=TIMEOUT_SECONDS, allow_redirects=False
        )
        answer = response.json() if response.status_code != 204 else {}
    except (
        requests.RequestException,
        ValueError,
    ) as error:  # also an answer that is no JSON, such as a page of a proxy
        raise ServiceError(0, "no_answer", "") from error
    if response.status_code < 300 and isinstance(answer, dict):
        return answer
    told = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(told, dict):
        raise ServiceError(0, "no_answer", "")
    text = " ".join(filter(None, (told.get("message"), told.get("detail"))))
    raise ServiceError(response.status_code, told.get("code", ""), text)


def is_genuine(secret, headers, body):
    """Whether the service signed these bytes (Standard Webhooks)."""
    message_id, sent_at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    is_now = sent_at.isdecimal() and abs(time.time() - int(sent_at)) <= TOLERANCE_SECONDS
    if not (secret and message_id and is_now):
        return False
    key = base64.b64decode(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else secret.encode()
    signed = hmac.new(key, f"{message_id}.{sent_at}.".encode() + body, hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(signed).decode()
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(expected.encode(), each.encode()) for each in given)


def satang(baht):
    """Baht of Odoo, which are floats with two decimals, as an integer."""
    return round(baht * 100)
