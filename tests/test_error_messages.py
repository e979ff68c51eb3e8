"""Each message of the catalogue of errors, word for word."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pytest_django import Settings

from apidocs.error_responses import CODES_OF_COMMANDS
from core.errors import CATALOGUE
from merchants.models import Merchant
from tests.conftest import SandboxBankClient, Shop, open_shop
from tests.error_messages import MESSAGES
from tests.factories import qr_request
from tests.reconciliation.claims.builders import waiting_refund
from tests.webhooks.builders import make_endpoint
from tests.withdrawals.builders import withdrawal_request
from webhooks.models import EventType

CODES, REFUNDS, WITHDRAWALS, WEBHOOKS = "/v1/qr-codes", "/v1/refunds", "/v1/withdrawals", "/v1/webhooks"
PAYMENTS, SANDBOX = "/v1/payments", "/sandbox/v1/payments"
UNKNOWN = "0" * 27
CARD = {"token_id": "tok_test_visa", "amount": 150_000, "currency": "THB"}
PAYEE = {"bank_code": "014", "bank_account": "4051234567", "account_name": "Malee"}


class Case(NamedTuple):
    """A request with the error that it gets. `{names}` in the message are values of the request."""

    code: str
    ask: Callable[[Shop], Any]
    message: str
    detail: str | None = None


def code_with(**fields: Any) -> Callable[[Shop], Any]:
    return lambda shop: shop.post(CODES, qr_request(**fields))


def refund_with(**fields: Any) -> Callable[[Shop], Any]:
    return lambda shop: shop.post(REFUNDS, {"payment_id": shop.qr_code()["payment_id"]} | fields)


def withdrawal_with(**fields: Any) -> Callable[[Shop], Any]:
    return lambda shop: shop.post(WITHDRAWALS, withdrawal_request(**fields))


def card_with(**fields: Any) -> Callable[[Shop], Any]:
    return lambda shop: shop.post(PAYMENTS, CARD | fields)


def webhook_with(**fields: Any) -> Callable[[Shop], Any]:
    body = {"url": "https://shop.example/", "events": ["payment.succeeded"]}
    return lambda shop: shop.post(WEBHOOKS, body | fields)


def pay_with(**fields: Any) -> Callable[[Shop], Any]:
    return lambda shop: shop.post(SANDBOX, {"qr_data": shop.qr_code()["qr_data"]} | fields)


def get(path: str) -> Callable[[Shop], Any]:
    return lambda shop: shop.get(path)


def act_on(path: str, body: Any = None) -> Callable[[Shop], Any]:
    return lambda shop: shop.post(path, body)


def without_bank(shop: Shop) -> Any:
    Merchant.objects.filter(pk=shop.merchant.id).update(biller_id="")
    return code_with()(shop)


def deactivate_twice(shop: Shop) -> Any:
    made = shop.post("/v1/payment-links", {"amount": 100}).json()
    path = f"/v1/payment-links/{made['payment_link_id']}/deactivate"
    return [shop.post(path) for _ in range(2)][-1]


def evidence_of_today(shop: Shop) -> Any:
    return shop.get(f"/v1/payments/{shop.qr_code()['payment_id']}/evidence")


def expire_twice(shop: Shop) -> Any:
    path = f"{CODES}/{shop.qr_code()['qr_code_id']}/expire"
    shop.post(path)
    return shop.post(path)


def expired_image(shop: Shop) -> Any:
    code_id = shop.qr_code()["qr_code_id"]
    shop.post(f"{CODES}/{code_id}/expire")
    return shop.get(f"/Thai/qr-codes/{code_id}/image", Accept="application/json")


def used_key(shop: Shop) -> Any:
    shop.post(CODES, qr_request(), key="k")
    return shop.post(CODES, qr_request(amount=100), key="k")


def disabled(tail: str, body: Any = None) -> Callable[[Shop], Any]:
    def ask(shop: Shop) -> Any:
        endpoint = make_endpoint(shop, status="disabled", disabled_reason="merchant")
        return shop.post(f"{WEBHOOKS}/{endpoint.id}/{tail}", body)

    return ask


def of_webhook(method: str, tail: str, body: Any = None) -> Callable[[Shop], Any]:
    return lambda shop: getattr(shop, method)(f"{WEBHOOKS}/{make_endpoint(shop).id}{tail}", body)


def with_key(key: str) -> Callable[[Shop], Any]:
    return lambda shop: shop.post(CODES, qr_request(), key=key)


def as_text(shop: Shop) -> Any:
    headers = {"Authorization": f"Bearer {shop.secret_key}"}
    return shop.http.post(CODES, "{}", content_type="text/plain", headers=headers)


def more_than_is_left(shop: Shop) -> Any:
    code = shop.qr_code()
    SandboxBankClient(shop.http).notify(code)
    return shop.post(REFUNDS, {"payment_id": code["payment_id"], "amount": 150_001})


def canceled_refund(tail: str, body: Any = None) -> Callable[[Shop], Any]:
    def ask(shop: Shop) -> Any:
        code = shop.qr_code()
        SandboxBankClient(shop.http).notify(code)
        made = shop.post(REFUNDS, {"payment_id": code["payment_id"]}).json()
        shop.post(f"{REFUNDS}/{made['refund_id']}/cancel")
        return shop.post(f"{REFUNDS}/{made['refund_id']}/{tail}", body)

    return ask


def many_pending_refunds(shop: Shop) -> Any:
    code = shop.qr_code()
    SandboxBankClient(shop.http).notify(code)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("refunds.services.MAX_PENDING_REFUNDS", 2)
        made = [shop.post(REFUNDS, {"payment_id": code["payment_id"], "amount": 1}) for _ in range(3)]
    assert {each.status_code for each in made[:-1]} == {200}
    return made[-1]


def many_claim_links(shop: Shop) -> Any:
    refund, _slip = waiting_refund(shop, SandboxBankClient(shop.http))
    made = [shop.post(f"{REFUNDS}/{refund['refund_id']}/claim-link") for _ in range(11)]
    assert {each.status_code for each in made[:-1]} == {200}
    return made[-1]


def canceled_withdrawal(shop: Shop) -> Any:
    SandboxBankClient(shop.http).notify(shop.qr_code())
    path = f"{WITHDRAWALS}/{shop.post(WITHDRAWALS, withdrawal_request()).json()['withdrawal_id']}/cancel"
    shop.post(path)
    return shop.post(path)


def of_live_merchant(shop: Shop) -> Any:
    return open_shop("Big Shop", mode="live").post(SANDBOX, {"qr_data": "x"})


AMOUNT = "Amount must be between 1 and 2000000 THB"
LIMITS = "is out of range: 100 to 200000000 satang"
TIME = "a date (2026-11-21) or a time (2026-11-21T10:00:00Z)"
GREGORIAN = ", not of the Buddhist calendar"
A_YEAR = f"a time (2026-11-21T10:00:00Z), within a year of now{GREGORIAN}"
DIGITS = "must have at least 10 characters"
CASES = [
    Case("invalid_amount", code_with(amount=99), AMOUNT, f"{LIMITS}; received 99"),
    Case("invalid_amount", act_on(CODES, {}), AMOUNT, "is required"),
    Case(
        "invalid_amount", withdrawal_with(amount=1.5), AMOUNT,
        "must have no decimal point and no exponent, because it is in satang: 1,500.00 THB is 150000; "
        "received 1.5",
    ),
    Case(
        "invalid_amount", refund_with(amount=0), AMOUNT,
        "must be at least 1 satang; received 0",
    ),
    Case(
        "invalid_currency", code_with(currency="USD"), 'currency must be THB. Received: "USD".', "must be THB"
    ),
    Case(
        "invalid_expiry_minutes", code_with(expiry_minutes=1441),
        "expiry_minutes must be an integer from 1 to 1440 minutes. Received: 1441.",
        "is out of range: 1 to 1440 minutes",
    ),
    Case(
        "invalid_reference", code_with(reference="Malee" * 8),
        "reference must be a string of 1 to 35 characters. Received: a string of 40 characters.",
        "must have at most 35 characters",
    ),
    *(
        Case(
            f"invalid_{name}", code_with(**{name: 4051234567}),
            f"{name} must be a string of 1 to 140 characters. Received: a number.", "must be a string",
        )
        for name in ("client_name", "client_bank_name", "client_bank_account")
    ),
    Case(
        "invalid_metadata", code_with(metadata=[1]),
        "metadata must be a JSON object of at most 50 keys and 8192 bytes, with numbers of at most 64 bits. "
        "Received: an array of 1 items.",
        "must be a JSON object",
    ),
    Case(
        "invalid_metadata", code_with(metadata={str(n): n for n in range(51)}),
        "metadata must be a JSON object of at most 50 keys and 8192 bytes, with numbers of at most 64 bits. "
        "Received: an object of 51 fields.",
        "must have at most 50 keys, but has 51",
    ),
    Case(
        "invalid_description", card_with(description=""),
        "description must be a string of 1 to 255 characters. Received: a string of 0 characters.",
        "must not be empty",
    ),
    Case(
        "invalid_token_id", card_with(token_id="4242424242424242"),
        "token_id must be a token that the acquirer made for a card. Received: a string of 16 characters.",
        "must be the token that the acquirer made for the card",
    ),
    Case("bank_not_configured", without_bank, "This merchant has no bank configured yet."),
    Case(
        "invalid_payment_id", refund_with(payment_id=7),
        "payment_id must be the id of a payment. Received: 7.", "must be a string",
    ),
    Case(
        "invalid_reason", refund_with(reason="why"),
        "reason must be one of requested_by_customer, duplicate, fraudulent, late_payment, other. "
        'Received: "why".',
        "must be one of requested_by_customer, duplicate, fraudulent, late_payment, other",
    ),
    Case(
        "invalid_part", act_on(f"{PAYMENTS}/pay_x/exceptions/btx_x/return", {"part": "rest"}),
        'part must be all or excess. Received: "rest".', "must be one of all, excess",
    ),
    Case(
        "invalid_note", refund_with(note=1),
        "note must be a string of 1 to 255 characters. Received: a number.", "must be a string",
    ),
    Case(
        "invalid_destination", refund_with(destination=PAYEE | {"bank_account": "12"}),
        "destination must be an object with bank_code, bank_account and account_name. "
        "Received: bank_account: a string of 2 characters.",
        f"bank_account {DIGITS}",
    ),
    Case(
        "invalid_bank_account", withdrawal_with(bank_account="12"),
        "bank_account must be the digits of an account number at that bank. "
        "Received: a string of 2 characters.",
        DIGITS,
    ),
    Case(
        "invalid_bank_code", withdrawal_with(bank_code="999"),
        "bank_code must be the 3-digit code or the short name of a bank (GET /v1/banks). "
        'Received: "999".',
        "is not the code or short name of a bank",
    ),
    Case(
        "invalid_account_name", withdrawal_with(account_name=""),
        "account_name must be a string of 1 to 140 characters in one line. "
        "Received: a string of 0 characters.",
        "must not be empty",
    ),
    Case(
        "payment_not_refundable", refund_with(),
        "This payment is pending; only a succeeded payment can be refunded.",
    ),
    Case(
        "refund_amount_exceeded", more_than_is_left,
        "The amount is more than the remaining amount of this payment: 1,500.00 THB.",
        "must be at most 150000 satang; received 150001",
    ),
    Case(
        "refund_not_addressable", canceled_refund("destination", PAYEE),
        "This refund is canceled; a destination can be set only while the refund waits for it.",
    ),
    Case(
        "too_many_pending_refunds", many_pending_refunds,
        "This payment has 2 pending refunds already. Wait until one of them ends, or cancel one.",
    ),
    Case(
        "too_many_claim_links", many_claim_links,
        "This refund had 10 claim links already. Set its destination instead.",
    ),
    Case(
        "invalid_expires_in_hours", act_on(f"{REFUNDS}/ref_{UNKNOWN}/claim-link", {"expires_in_hours": 0}),
        "expires_in_hours must be an integer from 1 to 720 hours. Received: 0.",
        "is out of range: 1 to 720 hours",
    ),
    Case(
        "refund_not_cancelable", canceled_refund("cancel"),
        "This refund is canceled; only a refund that was not submitted to a bank can be canceled.",
    ),
    Case(
        "withdrawal_not_cancelable", canceled_withdrawal,
        "This withdrawal is canceled; only a pending withdrawal can be canceled.",
    ),
    Case(
        "qr_code_not_expirable", expire_twice,
        "This QR code is expired; only a pending QR code can be expired.",
    ),
    Case(
        "payment_link_not_active", deactivate_twice,
        "This payment link is deactivated; only an active one can be paid or deactivated.",
    ),
    Case(
        "evidence_not_ready", evidence_of_today,
        "No day of this payment has been closed yet. Its evidence is there after the nightly close.",
    ),
    Case("qr_code_gone", expired_image, "This QR code can no longer be paid: it is expired."),
    Case(
        "invalid_format", get("/Thai/qr-codes/qr_x/image?format=gif"),
        'format must be png or svg. Received: "gif".',
    ),
    Case(
        "invalid_url", webhook_with(url="http://shop.example/"),
        "The URL must be a public https address, and the endpoint must answer a POST request.",
        "the scheme is not https",
    ),
    Case(
        "invalid_events", webhook_with(events=[]),
        f"events must be a list of at least one of {', '.join(EventType)}. Received: an array of 0 items.",
        "must have at least 1 item",
    ),
    Case(
        "invalid_events", webhook_with(events=["payment.succeeded", "payment.paid"]),
        f"events must be a list of at least one of {', '.join(EventType)}. Received: \"payment.paid\".",
        f"must be one of {', '.join(EventType)}",
    ),
    Case(
        "invalid_secret", webhook_with(secret="whsec_short_and_no_base64"),
        "secret must be a string of 16 to 255 characters; after whsec_ it is base64 of 24 to 64 bytes. "
        "Received: a string of 25 characters.",
        "must be base64 after whsec_",
    ),
    Case(
        "invalid_status", of_webhook("patch", "", {"status": "off"}),
        'status must be active or disabled. Received: "off".', "must be one of active, disabled",
    ),
    Case(
        "field_not_changeable", of_webhook("patch", "", {"secret": "x"}),
        "secret cannot be changed. Only these fields can: events, status, url.",
    ),
    Case(
        "invalid_since", of_webhook("post", "/replay", {"since": "now"}),
        f'since must be {TIME}{GREGORIAN}. Received: "now".', f"must be {TIME}",
    ),
    Case(
        "webhook_not_testable", disabled("test"),
        "This webhook or destination is disabled, so nothing is sent to it.",
    ),
    Case(
        "webhook_not_replayable", disabled("replay", {"since": "2026-11-21"}),
        "This webhook is disabled, so nothing is sent to it.",
    ),
    Case(
        "invalid_parameters", get("/v1/payments?limit=101"),
        'limit must be an integer from 1 to 100. Received: "101".',
    ),
    Case(
        "invalid_parameters", get("/v1/payments?amount=0"),
        'amount must be an integer from 1 to 1,000,000,000,000. Received: "0".',
    ),
    Case(
        "invalid_parameters", get("/v1/payments?limit=1&limit=2"), 'limit must be given once. Received: "2".'
    ),
    Case(
        "invalid_parameters", get("/v1/payments?start_date=x"), f'start_date must be {TIME}. Received: "x".'
    ),
    Case(
        "invalid_request", act_on(CODES, "{"),
        "The request is not valid: the body is not JSON at character 2.",
    ),
    Case("invalid_request", act_on(CODES, "[]"), "The request is not valid: the body is not a JSON object."),
    Case(
        "invalid_request", act_on(CODES, '{"a": 1, "a": 2}'),
        "The request is not valid: the body has an object with the same key twice.",
    ),
    Case("invalid_request", act_on(CODES, '{"a": NaN}'), "The request is not valid: NaN is not JSON."),
    Case("request_too_large", act_on(CODES, "x" * 65_537), "The request body is larger than 64 kB."),
    Case(
        "unsupported_media_type", as_text,
        "The body must be application/json in UTF-8, without Content-Encoding. Received: \"text/plain\".",
    ),
    Case(
        "invalid_idempotency_key", with_key("k" * 256),
        "Idempotency-Key must be 1 to 255 printable characters. Received: a string of 256 characters.",
    ),
    Case("idempotency_key_reused", used_key, "This idempotency key was used for a different request."),
    Case(
        "insufficient_funds", withdrawal_with(amount=150_000), "The balance does not cover this amount.",
        "150000 satang are more than the available 0",
    ),
    Case(
        "authentication_failed", lambda shop: shop.http.get(PAYMENTS),
        "The secret key is missing or not valid.",
    ),
    Case(
        "request_not_found", get("/v1/requests/none"), "No request with this id in the request log."
    ),
    Case("not_found", get("/v1/nothing"), "This path does not exist."),
    Case("not_found", get("/v1/payments/"), "This path does not exist.", "must not end with a slash"),
    Case("method_not_allowed", lambda shop: shop.delete(PAYMENTS), "This path does not support DELETE."),
    *(
        Case(code, get(f"/v1/{path}/{prefix}{UNKNOWN}"), f"No {name} {prefix}{UNKNOWN}.")
        for code, path, prefix, name in (
            ("payment_not_found", "payments", "pay_", "payment"),
            ("qr_code_not_found", "qr-codes", "qr_", "QR code"),
            ("refund_not_found", "refunds", "ref_", "refund"),
            ("webhook_not_found", "webhooks", "wh_", "webhook"),
            ("event_not_found", "events", "evt_", "event"),
            ("transaction_not_found", "transactions", "txn_", "transaction"),
            ("withdrawal_not_found", "withdrawals", "wd_", "withdrawal"),
            ("payment_link_not_found", "payment-links", "pl_", "payment link"),
            ("settlement_not_found", "settlements", "stl_", "settlement"),
        )
    ),
    Case(
        "delivery_not_found", of_webhook("post", f"/deliveries/dlv_{UNKNOWN}/redeliver"),
        f"No delivery dlv_{UNKNOWN} of this webhook.",
    ),
    Case("bank_not_found", lambda shop: shop.http.post("/banks/nobank/notifications"), "No bank nobank."),
    Case(
        "invalid_qr_data", pay_with(qr_data="4051234567"),
        "qr_data must be the payload of a Thai QR bill payment with an amount. "
        "Received: a string of 10 characters.",
    ),
    Case(
        "invalid_scenario", pay_with(scenario="lunch"),
        'scenario must be a scenario of the sandbox bank. Received: "lunch".',
        "must be one of paid, declined, late, reported_late, twice, over, under, callback_lost, "
        "callback_repeated, payer_unknown, unknown_reference, reversed",
    ),
    Case("invalid_paid_at", pay_with(paid_at="now"), f'paid_at must be {A_YEAR}. Received: "now".'),
    Case(
        "invalid_report_at", pay_with(report_at="2020-01-01T00:00:00Z"),
        f"report_at must be {A_YEAR}. Received: 2020-01-01T00:00:00.000Z.", "is more than a year from now",
    ),
    Case(
        "invalid_date", get("/sandbox/v1/statements/today"),
        f'date must be a date (2026-11-21){GREGORIAN}. Received: "today".',
    ),
    *(
        Case(
            f"invalid_advance_{unit}", act_on("/sandbox/v1/clock", {f"advance_{unit}": 0}),
            f"advance_{unit} must be an integer from 1 to {most} {unit}. Received: 0.",
            f"is out of range: 1 to {most} {unit}",
        )
        for unit, most in (("seconds", 7_776_000), ("minutes", 129_600))
    ),
    Case(
        "invalid_advance_seconds", act_on("/sandbox/v1/clock", {}),
        "Give either advance_seconds or advance_minutes.",
    ),
    Case("test_mode_only", of_live_merchant, "The sandbox bank is for test keys only."),
]  # fmt: skip

FRAMEWORK_WORDS = (
    "non_field",
    'type "str"',
    "ensure",
    "this field",
    "valid dictionary",
    "expected a",
    "dict ",
)


@pytest.fixture
def shop(shop: Shop, settings: Settings) -> Shop:
    settings.WEBHOOK_PROBE = "off"
    settings.WEBHOOK_ALLOW_HTTP = False
    return shop


@pytest.mark.parametrize("case", CASES, ids=[f"{n}-{case.code}" for n, case in enumerate(CASES)])
def test_refused_request_gets_this_message(shop: Shop, case: Case) -> None:
    response = case.ask(shop)
    error = response.json()["error"]
    assert (error["code"], error["message"]) == (case.code, case.message)
    assert response.status_code == CATALOGUE[case.code].status
    if case.detail is not None:
        assert error["detail"] == case.detail
    assert not [word for word in FRAMEWORK_WORDS if word in response.content.decode().lower()]


@pytest.mark.parametrize("code", MESSAGES)
def test_error_that_needs_more_than_a_request_is_compared_by_another_test(code: str) -> None:
    texts = [path.read_text() for path in Path(__file__).parent.rglob("test_*.py")]
    assert any("check_error(" in text and f'"{code}"' in text for text in texts if "MESSAGES" not in text)


def test_each_code_of_the_catalogue_has_a_case() -> None:
    """Those of `invalid_field` have one form of message, of which many have cases."""
    of_fields = {code for code, error in CATALOGUE.items() if error.__name__.startswith("Invalid_")}
    known = {case.code for case in CASES} | MESSAGES.keys()
    assert known | of_fields == CATALOGUE.keys() - CODES_OF_COMMANDS
    assert len(known & of_fields) > 10
