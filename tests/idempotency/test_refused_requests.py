"""A request that was refused after validation keeps its key: the same one runs again, another one is 409."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NoReturn

import pytest
import time_machine
from django.urls import get_resolver
from pytest_django import Settings

from core import clock, ids
from core.errors import CATALOGUE, TooManyParameters
from idempotency import services
from idempotency.fingerprint import Fingerprint
from idempotency.keys import KeyedRequest
from idempotency.models import REFUSED, IdempotencyKey
from merchants.models import Merchant
from payments.models import Payment
from qrcodes.errors import QrCodeNotExpirable
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, new_client, open_shop
from tests.factories import qr_request
from tests.tables import count_rows
from tests.withdrawals.builders import fund, withdrawal_request
from withdrawals.models import Withdrawal

CODES, REFUNDS, WITHDRAWALS = "/Thai/v1/qr-codes", "/v1/refunds", "/v1/withdrawals"
KEY = "order-1"
# Refusals of valid requests, besides those of unknown objects.
OF_VALID_REQUESTS = {
    "bank_not_configured", "card_declined", "clock_limit_reached", "clock_not_advanceable",
    "delivery_not_redeliverable", "email_not_configured", "evidence_not_ready",
    "exception_not_acceptable", "exception_not_returnable", "expired_card", "insufficient_funds",
    "key_not_rollable", "method_not_allowed", "partial_refund_not_supported", "payment_link_not_active",
    "payment_not_held", "payment_not_refundable", "payout_account_not_allowed", "payout_account_too_new",
    "processing_error",
    "qr_code_gone", "qr_code_not_expirable", "reference_in_use", "refund_amount_exceeded",
    "refund_not_addressable", "refund_not_cancelable", "too_many_claim_links", "too_many_destinations",
    "too_many_pending_refunds", "too_many_webhooks", "webhook_not_replayable", "webhook_not_testable",
    "withdrawal_not_cancelable",
}  # fmt: skip
Refused = tuple[str, Any, Any, int, str]


def test_refusals_of_valid_requests_keep_their_key() -> None:
    assert get_resolver().url_patterns  # imports all errors
    keeping = {code for code, error in CATALOGUE.items() if error.keeps_key}
    assert {code for code in keeping if not code.endswith("not_found")} == OF_VALID_REQUESTS
    assert {code for code in CATALOGUE if code.endswith("not_found")} <= keeping


def unknown_payment(shop: Shop) -> Refused:
    """A path, a body, another body, and the refusal of the first."""
    body = {"payment_id": ids.new("pay_", clock.now())}
    return REFUNDS, body, body | {"amount": 100}, 404, "payment_not_found"


def pending_payment(shop: Shop) -> Refused:
    body = {"payment_id": shop.qr_code()["payment_id"]}
    return REFUNDS, body, body | {"note": "n"}, 400, "payment_not_refundable"


def no_money(shop: Shop) -> Refused:
    return WITHDRAWALS, withdrawal_request(), withdrawal_request(amount=100), 402, "insufficient_funds"


def expired_code(shop: Shop) -> Refused:
    path = f"{CODES}/{shop.qr_code()['qr_code_id']}/expire"
    assert shop.post(path).status_code == 200
    return path, None, {"other": 1}, 400, "qr_code_not_expirable"


def no_bank(shop: Shop) -> Refused:
    Merchant.objects.filter(pk=shop.merchant.id).update(biller_id="")
    return CODES, qr_request(), qr_request(amount=100), 400, "bank_not_configured"


REFUSALS = [unknown_payment, pending_payment, no_money, expired_code, no_bank]


def code_of(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_refused_request_runs_again_and_another_request_is_409(
    shop: Shop, refusal: Callable[[Shop], Refused]
) -> None:
    path, body, other, status, code = refusal(shop)
    before = count_rows()
    first = shop.post(path, body, key=KEY)
    assert code_of(first) == (status, code)
    assert count_rows() == before | {"idempotency_idempotencykey": before["idempotency_idempotencykey"] + 1}
    assert code_of(shop.post(path, other, key=KEY)) == (409, "idempotency_key_reused")
    again = shop.post(path, body, key=KEY)
    assert (again.content, "Idempotent-Replayed" in again.headers) == (first.content, False)
    assert IdempotencyKey.objects.get().status == REFUSED


@pytest.mark.slow
def test_refused_request_succeeds_later_and_is_then_replayed(shop: Shop, bank: SandboxBankClient) -> None:
    assert code_of(shop.post(WITHDRAWALS, withdrawal_request(), key=KEY)) == (402, "insufficient_funds")
    fund(shop, bank)
    made = shop.post(WITHDRAWALS, withdrawal_request(), key=KEY)
    again = shop.post(WITHDRAWALS, withdrawal_request(), key=KEY)
    assert (made.status_code, again.content) == (200, made.content)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert Withdrawal.objects.count() == 1


def test_merchant_without_bank_creates_the_code_later_under_the_same_key(shop: Shop) -> None:
    no_bank(shop)
    assert shop.post(CODES, qr_request(), key=KEY).status_code == 400
    Merchant.objects.filter(pk=shop.merchant.id).update(biller_id=shop.merchant.biller_id)
    made = shop.post(CODES, qr_request(), key=KEY)
    assert made.status_code == 200
    assert shop.post(CODES, qr_request(), key=KEY).content == made.content
    assert Payment.objects.count() == 1


@pytest.mark.parametrize("path", [CODES, REFUNDS, WITHDRAWALS, "/v1/webhooks"])
def test_request_that_fails_validation_leaves_no_trace(shop: Shop, path: str) -> None:
    before = count_rows()
    assert shop.post(path, {"amount": "x"}, key=KEY).status_code in (400, 422)
    assert count_rows() == before


def test_webhook_with_invalid_secret_leaves_no_trace(shop: Shop, settings: Settings) -> None:
    settings.WEBHOOK_PROBE = "off"
    made = shop.post("/v1/webhooks", {"url": "https://1.1.1.1/", "events": ["payment.succeeded"]}).json()
    before = count_rows()
    path = f"/v1/webhooks/{made['webhook_id']}/secret/rotate"
    assert code_of(shop.post(path, {"secret": "whsec_" + "x" * 20}, key=KEY)) == (400, "invalid_secret")
    assert count_rows() == before


def test_fingerprint_of_refused_request_expires_after_24_hours(shop: Shop, noon: datetime) -> None:
    path, body, other, *_ = unknown_payment(shop)
    with time_machine.travel(noon, tick=False) as now:
        shop.post(path, body, key=KEY)
        now.move_to(noon + timedelta(hours=24) - timedelta(milliseconds=1))
        assert code_of(shop.post(path, other, key=KEY)) == (409, "idempotency_key_reused")
        now.move_to(noon + timedelta(hours=24))
        assert code_of(shop.post(path, other, key=KEY)) == (404, "payment_not_found")


def test_refused_request_runs_again_after_rotation_of_the_fingerprint_key(
    shop: Shop, settings: Settings
) -> None:
    settings.IDEMPOTENCY_KEYS = ["old" * 20]
    path, body, other, *_ = unknown_payment(shop)
    shop.post(path, body, key=KEY)
    settings.IDEMPOTENCY_KEYS = ["new" * 20, "old" * 20]
    assert code_of(shop.post(path, other, key=KEY)) == (409, "idempotency_key_reused")
    assert code_of(shop.post(path, body, key=KEY)) == (404, "payment_not_found")


# --- what the work wrote before its refusal -------------------------------------------------------------


def keyed_request(shop: Shop) -> KeyedRequest:
    print_ = Fingerprint.of(method="POST", operation="pay", body="a")
    return KeyedRequest(shop.merchant, KEY, print_, clock.now())


@pytest.mark.parametrize(
    ("refusal", "is_kept"), [(QrCodeNotExpirable(status="paid"), True), (TooManyParameters(), False)]
)
def test_nothing_stays_of_work_that_is_refused_late(shop: Shop, refusal: Exception, is_kept: bool) -> None:
    def work() -> NoReturn:
        Merchant.objects.filter(pk=shop.merchant.id).update(name="Changed")
        raise refusal

    with pytest.raises(type(refusal)):
        services.run_once(keyed_request(shop), work)
    assert not Merchant.objects.filter(name="Changed").exists()
    assert IdempotencyKey.objects.exists() == is_kept


# --- races ----------------------------------------------------------------------------------------------


def posting(shop: Shop, path: str, body: Any) -> Callable[[], Any]:
    own = Shop(shop.merchant, shop.secret_key, new_client())
    return lambda: own.post(path, body, key=KEY)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.slow
def test_of_two_bodies_at_once_one_keeps_the_key(refusal: Callable[[Shop], Refused]) -> None:
    shop = open_shop("Race")
    path, body, other, status, _ = refusal(shop)
    answers = run_concurrently(*[posting(shop, path, each) for each in [body, other] * 8])
    ours, theirs = (Counter(answer.status_code for answer in answers[start::2]) for start in range(2))
    kept, refused = (ours, theirs) if 409 in theirs else (theirs, ours)
    assert (409 in kept, refused) == (False, Counter({409: 8}))
    assert kept == Counter({status: 8})
    assert IdempotencyKey.objects.get(key=KEY).status == REFUSED


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_of_one_refused_and_one_good_body_at_once_only_one_is_done(bank: SandboxBankClient) -> None:
    """The bodies differ, so that whichever comes first keeps the key, also if it is refused."""
    for number in range(5):
        shop = open_shop(f"Race {number}")
        fund(shop, bank)
        bodies = [withdrawal_request(amount=100_000), withdrawal_request(amount=200_000)]
        good, bad = run_concurrently(*[posting(shop, WITHDRAWALS, body) for body in bodies])
        assert (good.status_code, bad.status_code) in {(200, 409), (409, 402)}
        made = Withdrawal.objects.filter(merchant=shop.merchant).count()
        assert made == (good.status_code == 200)
