"""Keys, account numbers and webhook secrets in any part of a request appear in no answer and no log."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client, RequestFactory
from pytest_django import Settings

from banks import TransferResult
from core.http import api
from core.observing import access_log
from core.observing.access_log import AccessLog
from core.observing.logs import JsonFormatter
from merchants import secret_keys
from tests.conftest import SandboxBankClient, Shop
from tests.factories import qr_request
from tests.refunds.builders import PAYEE
from tests.secret_search import leaks
from tests.transfers.conftest import served_by
from tests.withdrawals.builders import (
    PATH,
    event_data_of,
    send_due_withdrawals,
    withdrawal_request,
    withdrawn,
)

__all__ = ["served_by"]
KEY = secret_keys.generate("live")
# Too long to appear in an id or a time by chance.
ACCOUNT = "741258963074125"
WEBHOOK_SECRET = "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5"
CANARIES = [KEY, ACCOUNT, WEBHOOK_SECRET]
# The parts that must not appear. The public start of a key and the last digits of an account may.
SECRET_PARTS = [KEY[16:], ACCOUNT[:11], WEBHOOK_SECRET[6:]]
HOOK = {"url": "https://shop.example/hook", "events": ["payment.succeeded"]}


def leaked(text: bytes, *more: str) -> list[str]:
    return leaks({part: part.encode() for part in [*SECRET_PARTS, *more]}, text)


class Written(io.StringIO):
    """The log output, access lines included."""

    def __init__(self, log: AccessLog) -> None:
        super().__init__()
        self._log = log

    def getvalue(self) -> str:
        self._log.flush()
        return super().getvalue()

    def leaks(self, *more: str) -> list[str]:
        return leaked(self.getvalue().encode(), *more)


@pytest.fixture
def written() -> Iterator[Written]:
    log, root = access_log.of_this_process(), logging.getLogger()
    assert log
    log.flush()
    stream, stream_before = Written(log), log.stream
    log.stream = stream
    handler, level = logging.StreamHandler(stream), root.level
    handler.setFormatter(JsonFormatter())
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    log.flush()
    log.stream = stream_before
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture(autouse=True)
def no_probe(settings: Settings) -> None:
    settings.WEBHOOK_PROBE = "off"


def asked_with(shop: Shop, secret: str) -> Iterator[Any]:
    """Answers to requests with the secret in paths, queries, headers, fields, keys and invalid JSON."""
    for path in ("payments", "qr-codes", "webhooks", "nope"):
        yield shop.get(f"/v1/{path}/{secret}")
    yield shop.post(f"/v1/qr-codes/{secret}/expire")
    yield shop.get(f"/Thai/qr-codes/{secret}/image")
    yield shop.get(f"/Thai/qr-codes/qr_x/image?format={secret}")
    for name in ("status", "limit", "offset", "type", "start_date", "end_date", secret):
        yield shop.get(f"/v1/transactions?{name}={secret}")
    for headers in ({"Authorization": f"Bearer {secret}"}, {"Authorization": secret}):
        yield shop.http.get("/v1/payments", headers=headers)
    yield shop.post("/v1/qr-codes", qr_request(), key=secret * 20)
    for field in (*qr_request(), "client_bank_account", "reference", "expiry_minutes", "metadata"):
        for value in (secret, secret * 20, [secret], {secret: secret}):
            yield shop.post("/v1/qr-codes", qr_request(**{field: value}))
    for field in withdrawal_request(reference="", metadata=""):
        for value in (f"{secret}!", secret * 20, [secret], {secret: secret}):
            yield shop.post("/v1/withdrawals", withdrawal_request(**{field: value}))
    for field in ("payment_id", "amount", "reason", "note", "destination", "metadata"):
        for value in (secret, secret * 20, [secret], PAYEE | {"bank_account": f"{secret}!"}):
            yield shop.post("/v1/refunds", {"payment_id": "pay_x"} | {field: value})
    for field in ("url", "events", "secret"):
        for value in (f"{secret}!", [secret], {secret: secret}):
            yield shop.post("/v1/webhooks", HOOK | {field: value})
    for body in (f'{{"{secret}":1,"{secret}":2}}', f'{{"amount":"{secret}', f'["{secret}"]', secret):
        yield shop.post("/v1/qr-codes", body.encode())


@pytest.mark.parametrize("secret", CANARIES, ids=["key", "account", "webhook secret"])
@pytest.mark.slow
def test_refused_requests_and_logs_contain_no_secret(shop: Shop, written: Written, secret: str) -> None:
    refusals = [response for response in asked_with(shop, secret) if response.status_code >= 400]
    assert len(refusals) > 40
    assert [response.content for response in refusals if leaked(response.content)] == []
    assert written.getvalue().count("\n") > 40
    assert written.leaks(shop.secret_key[16:]) == []


def test_successful_requests_log_no_secret(shop: Shop, bank: SandboxBankClient, written: Written) -> None:
    made = shop.post("/v1/webhooks", HOOK | {"secret": WEBHOOK_SECRET})
    code = shop.qr_code(client_bank_account=ACCOUNT)
    bank.notify(code, payer_account=ACCOUNT)
    read = shop.get(f"/v1/webhooks/{made.json()['webhook_id']}")
    assert (made.status_code, read.status_code) == (200, 200)
    assert leaked(made.content + read.content) == []
    assert shop.payment(code["payment_id"])["status"] == "succeeded"
    assert written.leaks(shop.secret_key[16:]) == []


@pytest.mark.slow
def test_payout_account_is_never_shown(
    shop: Shop, bank: SandboxBankClient, written: Written, admin_client: Client, served_by: Callable[..., Any]
) -> None:
    served_by(sends=[TransferResult("processing"), RuntimeError(f"no such account: {ACCOUNT}")])
    bank.notify(shop.qr_code(amount=300_000))
    made = [withdrawn(shop, bank_code="020", bank_account=ACCOUNT) for _ in range(2)]
    send_due_withdrawals(3)
    shown = [shop.get(PATH), *(shop.get(f"{PATH}/{each['withdrawal_id']}") for each in made)]
    for page in ("withdrawals/withdrawal", "transfers/transfer"):
        shown.append(admin_client.get(f"/admin/{page}/"))
        shown.append(admin_client.get(f"/admin/{page}/{made[0]['withdrawal_id']}/change/"))
    assert {response.status_code for response in shown} == {200}
    texts = [
        *(response.content.decode() for response in shown),
        str(made),
        str([event_data_of(each) for each in made]),
    ]
    assert [text for text in texts if ACCOUNT[:11] in text] == []
    assert "an adapter failed" in written.getvalue()
    assert written.leaks() == []


def test_internal_error_is_logged_with_redacted_secrets(written: Written) -> None:
    request = RequestFactory().get(f"/v1/payments/{KEY}")
    try:
        raise ValueError(f"Bearer {KEY} for account {ACCOUNT} with {WEBHOOK_SECRET}")
    except ValueError as error:
        response = api.error_response(error, request)
    assert "ValueError" in json.loads(written.getvalue().splitlines()[-1])["error"]
    assert leaked(response.content) == []
    assert written.leaks() == []
