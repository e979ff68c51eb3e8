"""Keys, accounts and webhook secrets, planted wherever a request can carry them, come out nowhere."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client, RequestFactory
from pytest_django import Settings

from banks import Word
from core import api
from core.logs import JsonLine
from merchants import secrets
from tests.conftest import BankCaller, Shop
from tests.factories import qr_request
from tests.refunds.cast import PAYEE
from tests.transfers.conftest import served_by
from tests.withdrawals.cast import PATH, told, withdrawal_request, withdrawn, work
from tests.writings import leaks

__all__ = ["served_by"]
KEY = secrets.new("live")
# Longer than any digits that stand in an id or a time by chance.
ACCOUNT = "741258963074125"
WEBHOOK_SECRET = "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2FuYXJ5"
CANARIES = [KEY, ACCOUNT, WEBHOOK_SECRET]
# What is looked for: the public start of a key and the last digits of an account may be shown.
SECRET_PARTS = [KEY[16:], ACCOUNT[:11], WEBHOOK_SECRET[6:]]
HOOK = {"url": "https://shop.example/hook", "events": ["payment.succeeded"]}


def leaked(text: bytes, *more: str) -> list[str]:
    return leaks({part: part.encode() for part in [*SECRET_PARTS, *more]}, text)


class Written(io.StringIO):
    """The log as it would be written."""

    def leaks(self, *more: str) -> list[str]:
        return leaked(self.getvalue().encode(), *more)


@pytest.fixture
def written() -> Iterator[Written]:
    stream, root = Written(), logging.getLogger()
    handler, level = logging.StreamHandler(stream), root.level
    handler.setFormatter(JsonLine())
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture(autouse=True)
def no_probe(settings: Settings) -> None:
    settings.WEBHOOK_PROBE = "off"


def asked_with(shop: Shop, canary: str) -> Iterator[Any]:
    """Answers to requests that carry the canary: in paths, queries, headers, fields, keys and broken JSON."""
    for path in ("payments", "qr-codes", "webhooks", "nope"):
        yield shop.get(f"/v1/{path}/{canary}")
    yield shop.post(f"/v1/qr-codes/{canary}/expire")
    yield shop.get(f"/Thai/qr-codes/{canary}/image")
    yield shop.get(f"/Thai/qr-codes/qr_x/image?format={canary}")
    for name in ("status", "limit", "offset", "type", "start_date", "end_date", canary):
        yield shop.get(f"/v1/transactions?{name}={canary}")
    for headers in ({"Authorization": f"Bearer {canary}"}, {"Authorization": canary}):
        yield shop.http.get("/v1/payments", headers=headers)
    yield shop.post("/v1/qr-codes", qr_request(), key=canary * 20)
    for field in (*qr_request(), "client_bank_account", "reference", "expiry_minutes", "metadata"):
        for value in (canary, canary * 20, [canary], {canary: canary}):
            yield shop.post("/v1/qr-codes", qr_request(**{field: value}))
    for field in withdrawal_request(reference="", metadata=""):
        for value in (f"{canary}!", canary * 20, [canary], {canary: canary}):
            yield shop.post("/v1/withdrawals", withdrawal_request(**{field: value}))
    for field in ("payment_id", "amount", "reason", "note", "destination", "metadata"):
        for value in (canary, canary * 20, [canary], PAYEE | {"bank_account": f"{canary}!"}):
            yield shop.post("/v1/refunds", {"payment_id": "pay_x"} | {field: value})
    for field in ("url", "events", "secret"):
        for value in (f"{canary}!", [canary], {canary: canary}):
            yield shop.post("/v1/webhooks", HOOK | {field: value})
    for body in (f'{{"{canary}":1,"{canary}":2}}', f'{{"amount":"{canary}', f'["{canary}"]', canary):
        yield shop.post("/v1/qr-codes", body.encode())


@pytest.mark.parametrize("canary", CANARIES, ids=["key", "account", "webhook secret"])
def test_no_refusal_and_no_log_repeats_a_secret(shop: Shop, written: Written, canary: str) -> None:
    refusals = [answer for answer in asked_with(shop, canary) if answer.status_code >= 400]
    assert len(refusals) > 40
    assert [answer.content for answer in refusals if leaked(answer.content)] == []
    assert written.getvalue().count("\n") > 40
    assert written.leaks(shop.secret_key[16:]) == []


def test_what_goes_well_is_not_written_down_either(shop: Shop, bank: BankCaller, written: Written) -> None:
    made = shop.post("/v1/webhooks", HOOK | {"secret": WEBHOOK_SECRET})
    code = shop.qr_code(client_bank_account=ACCOUNT)
    bank.tell(code, payer_account=ACCOUNT)
    read = shop.get(f"/v1/webhooks/{made.json()['webhook_id']}")
    assert (made.status_code, read.status_code) == (200, 200)
    assert leaked(made.content + read.content) == []
    assert shop.payment(code["payment_id"])["status"] == "succeeded"
    assert written.leaks(shop.secret_key[16:]) == []


def test_an_account_that_money_is_sent_to_is_shown_to_nobody(
    shop: Shop, bank: BankCaller, written: Written, admin_client: Client, served_by: Callable[..., Any]
) -> None:
    served_by(sends=[Word("processing"), RuntimeError(f"no such account: {ACCOUNT}")])
    bank.tell(shop.qr_code(amount=300_000))
    made = [withdrawn(shop, bank_code="020", bank_account=ACCOUNT) for _ in range(2)]
    work(3)
    shown = [shop.get(PATH), *(shop.get(f"{PATH}/{each['withdrawal_id']}") for each in made)]
    for page in ("withdrawals/withdrawal", "transfers/transfer"):
        shown.append(admin_client.get(f"/admin/{page}/"))
        shown.append(admin_client.get(f"/admin/{page}/{made[0]['withdrawal_id']}/change/"))
    assert {answer.status_code for answer in shown} == {200}
    texts = [*(answer.content.decode() for answer in shown), str(made), str([told(each) for each in made])]
    assert [text for text in texts if ACCOUNT[:11] in text] == []
    assert "an adapter failed" in written.getvalue()
    assert written.leaks() == []


def test_a_fault_is_logged_whole_but_for_its_secrets(written: Written) -> None:
    request = RequestFactory().get(f"/v1/payments/{KEY}")
    try:
        raise ValueError(f"Bearer {KEY} for account {ACCOUNT} with {WEBHOOK_SECRET}")
    except ValueError as error:
        answer = api.refusal(error, request)
    assert "ValueError" in json.loads(written.getvalue().splitlines()[-1])["error"]
    assert leaked(answer.content) == []
    assert written.leaks() == []
