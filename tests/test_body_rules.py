"""Rules of request bodies: size and content type, and the fields of a QR code."""

import gzip
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from tests.conftest import SandboxBankClient, Shop
from tests.factories import qr_request
from tests.webhooks.builders import make_endpoint
from tests.withdrawals.builders import withdrawal_request

CODES = "/Thai/v1/qr-codes"


def refused(response: Any, code: str, param: str | None = None, status: int = 400) -> bool:
    error = response.json().get("error", {})
    shown = (response.status_code, error.get("code"), error.get("type"), error.get("param"))
    return shown == (status, code, "validation_error", param)


def each(field: str, *values: Any) -> list[tuple[str, Any]]:
    """Pairs of the field and each value."""
    return [(field, value) for value in values]


def make(shop: Shop, **changes: Any) -> Any:
    return shop.post(CODES, qr_request(**changes))


def test_body_over_64_kb_is_413(shop: Shop) -> None:
    assert refused(shop.post(CODES, b"x" * 65_536), "invalid_request")
    assert refused(shop.post(CODES, b"x" * 65_537), "request_too_large", status=413)


@pytest.mark.parametrize("given", ["", "text/plain", "application/xml", "application/json; charset=latin-1"])
def test_content_type_is_checked_only_with_a_body(shop: Shop, given: str) -> None:
    authorized = {"Authorization": f"Bearer {shop.secret_key}"}
    expire = f"{CODES}/{shop.qr_code()['qr_code_id']}/expire"
    for path in (CODES, expire):
        response = shop.http.post(path, b"{}", content_type=given, headers=authorized)
        assert refused(response, "unsupported_media_type", status=415)
    assert shop.http.generic("GET", "/v1/payments", CONTENT_TYPE=given, headers=authorized).status_code == 200
    assert shop.http.generic("POST", expire, CONTENT_TYPE=given, headers=authorized).status_code == 200


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "GZIP", "identity, gzip", "x"])
def test_compressed_body_is_refused(shop: Shop, encoding: str) -> None:
    encoded = {"Content-Encoding": encoding}
    for body in (b"{}", gzip.compress(b'{"amount": 100, "currency": "THB"}')):
        assert refused(shop.post(CODES, body, **encoded), "unsupported_media_type", status=415)
    expire = f"{CODES}/{shop.qr_code()['qr_code_id']}/expire"
    assert refused(shop.post(expire, b"{}", **encoded), "unsupported_media_type", status=415)
    assert (
        shop.post(expire, **encoded).status_code == 200
    )  # a header about a body does not matter without one


@pytest.mark.parametrize("encoding", ["", "identity", "Identity", " identity "])
def test_content_encoding_identity_is_accepted(shop: Shop, encoding: str) -> None:
    assert shop.post(CODES, qr_request(), **{"Content-Encoding": encoding}).status_code == 200


@pytest.mark.parametrize("field", ["reference", "client_name", "client_bank_name", "client_bank_account"])
@pytest.mark.parametrize("control", ["\u202e", "\u2066", "\u200f"])
def test_bidirectional_control_character_is_refused_with_the_field_name(
    shop: Shop, field: str, control: str
) -> None:
    response = make(shop, **{field: f"order {control}71"})
    assert refused(response, f"invalid_{field}", field)
    assert response.json()["error"]["detail"] == "must not contain bidirectional control characters"
    assert control not in response.content.decode()


def test_optional_body_must_be_json(shop: Shop) -> None:
    expire = f"{CODES}/{shop.qr_code()['qr_code_id']}/expire"
    assert refused(shop.post(expire, b"{"), "invalid_request")
    assert refused(shop.post(expire, b"{", key="k"), "invalid_request")
    assert shop.post(expire, {"any": "thing"}).status_code == 200


def test_unknown_body_fields_are_ignored(shop: Shop) -> None:
    response = make(shop, merchant="mch_x", status="succeeded", payment_id="pay_x", id=1, expires_at="now")
    assert response.status_code == 200
    assert response.json()["status"] == "pending"
    assert response.json().keys() == shop.qr_code().keys()


@pytest.mark.parametrize("amount", [100, 101, 150_000, 200_000_000])
def test_amount_must_be_1_to_2_000_000_baht_in_satang(shop: Shop, amount: int) -> None:
    assert make(shop, amount=amount).json()["amount"] == amount


@pytest.mark.parametrize(
    "amount", [99, 200_000_001, 0, -100, "100", 100.5, 1e2 - 1, True, None, [], {}, 2**63 - 1, 2**63, 10**30]
)
def test_invalid_amount_has_fixed_message(shop: Shop, amount: Any) -> None:
    assert_amount_refused(make(shop, amount=amount))


def test_json_number_without_a_fraction_is_an_integer(shop: Shop) -> None:
    for raw, minutes in {"100.0": 100, "1e2": 100, "1.5E+1": 15, "100.000000000000000000": 100}.items():
        made = shop.post(CODES, f'{{"amount": 150000, "currency": "THB", "expiry_minutes": {raw}}}').json()
        payment = shop.payment(made["payment_id"])
        lifetime = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(payment["created_at"])
        assert lifetime == timedelta(minutes=minutes), raw
    for raw in ("99.999999999999999999", "100.5", "1e-1", "1440.0000000000000000001"):
        refusal = shop.post(CODES, f'{{"amount": 150000, "currency": "THB", "expiry_minutes": {raw}}}')
        assert refused(refusal, "invalid_expiry_minutes", "expiry_minutes"), raw


@pytest.mark.slow
def test_amount_with_a_decimal_point_or_an_exponent_is_refused_everywhere(shop: Shop) -> None:
    """Whoever writes 1500.00 means baht: it made a code of 15.00 THB."""
    account = '"bank_code": "014", "bank_account": "1234567890", "account_name": "Somchai"'
    bodies = {
        CODES: '{"amount": %s, "currency": "THB"}',
        "/v1/payments": '{"token_id": "tok_test_visa", "amount": %s, "currency": "THB"}',
        "/v1/refunds": '{"payment_id": "pay_1", "amount": %s}',
        "/v1/withdrawals": '{"amount": %s, "currency": "THB", ' + account + "}",
    }
    for path, body in bodies.items():
        for raw in ("1500.0", "1500.00", "1.5e3", "1e5", "150000.000000000000000000001", "1e400"):
            for key in (None, f"{path} {raw}"):
                refusal = shop.post(path, body % raw, key=key)
                assert refused(refusal, "invalid_amount", "amount"), (path, raw)
                assert refusal.json()["error"]["detail"].startswith(f"{WRITTEN}; received "), (path, raw)


OUT_OF_RANGE = "is out of range: 100 to 200000000 satang"
NO_INTEGER = "must be an integer number of satang"
WRITTEN = "must have no decimal point and no exponent, because it is in satang: 1,500.00 THB is 150000"


@pytest.mark.parametrize(
    ("raw", "detail"),
    [
        ("99", f"{OUT_OF_RANGE}; received 99"),
        ("-0.0", f"{WRITTEN}; received -0.0"),
        ("9223372036854775808", f"{OUT_OF_RANGE}; received a number of 19 characters"),
        ("1" + "0" * 30, f"{OUT_OF_RANGE}; received a number of 31 characters"),
        ("9" * 60_000, f"{OUT_OF_RANGE}; received a number of 60000 characters"),
        ("1e400", f"{WRITTEN}; received 1e400"),
        ("1e999999999999999999999", f"{WRITTEN}; received a number of 23 characters"),
        ("99.999999999999999999", f"{WRITTEN}; received a number of 21 characters"),
        ("100.5", f"{WRITTEN}; received 100.5"),
        ("1e-400", f"{WRITTEN}; received 1e-400"),
        ('"100"', f'{NO_INTEGER}; received "100"'),
        ('"4051234567"', f'{NO_INTEGER}; received "...4567"'),
        ("4051234567", f"{OUT_OF_RANGE}; received a number of 10 characters"),
        ("true", f"{NO_INTEGER}; received true"),
        ("null", f"{NO_INTEGER}; received null"),
        ("[100]", f"{NO_INTEGER}; received an array of 1 items"),
    ],
    ids=lambda value: value[:30],
)
def test_detail_of_invalid_amount_tells_what_is_wrong(shop: Shop, raw: str, detail: str) -> None:
    response = shop.post(CODES, f'{{"amount": {raw}, "currency": "THB"}}')
    assert_amount_refused(response)
    assert response.json()["error"]["detail"] == detail


@pytest.mark.parametrize(
    "raw", ["9223372036854775808", "1e400", "[[-9223372036854775809]]", '{"a": 1e999999}']
)
def test_number_beyond_64_bits_in_metadata_is_refused(shop: Shop, raw: str) -> None:
    response = shop.post(CODES, f'{{"amount": 100, "currency": "THB", "metadata": {{"k": {raw}}}}}')
    assert refused(response, "invalid_metadata", "metadata")
    assert response.json()["error"]["detail"] == "must not contain a number beyond 64 bits"


def test_number_beyond_64_bits_in_an_unknown_field_is_ignored(shop: Shop) -> None:
    body = '{"amount": 100, "currency": "THB", "foo": 9223372036854775808}'
    made = [shop.post(CODES, body, key="k") for _ in range(2)]
    assert [each.status_code for each in made] == [200, 200]
    assert made[0].content == made[1].content
    assert shop.post(CODES, body.replace("8}", "9}"), key="k").status_code == 409


def test_fraction_in_metadata_is_rounded_to_64_bits(shop: Shop) -> None:
    made = shop.post(CODES, '{"amount": 100, "currency": "THB", "metadata": {"k": [99.999999999999999999]}}')
    assert made.json()["metadata"] == {"k": [100.0]}


def test_missing_amount_has_fixed_message(shop: Shop) -> None:
    response = shop.post(CODES, {"currency": "THB"})
    assert_amount_refused(response)
    assert response.json()["error"]["detail"] == "is required"
    assert_amount_refused(shop.post(CODES, {}))


def assert_amount_refused(response: Any) -> None:
    assert refused(response, "invalid_amount", "amount")
    assert response.json()["error"]["message"] == "Amount must be between 1 and 2000000 THB"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *each("currency", "USD", "thb", "THB ", "", 764, None, ["THB"]),
        *each("expiry_minutes", 0, 1441, -1, "15", 15.5, True, 2**31, []),
        *each("reference", "", " ", "\u200b", "r" * 36, 1, [], {}),
        *each("client_name", "", "n" * 141, 1, True),
        *each("client_bank_name", "", "n" * 141, 1),
        *each("client_bank_account", "", "1" * 141, 1234567890),
        *each("metadata", [], "x", 1, {"k": "x" * 8_192}),
        ("metadata", {str(number): 1 for number in range(51)}),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_invalid_field_is_named_in_error(shop: Shop, field: str, value: Any) -> None:
    assert refused(make(shop, **{field: value}), f"invalid_{field}", field)


@pytest.mark.slow
def test_null_for_an_optional_field_means_omitted(shop: Shop, bank: SandboxBankClient) -> None:
    optional = ("client_name", "client_bank_name", "client_bank_account", "reference", "expiry_minutes")
    made = make(shop, **dict.fromkeys((*optional, "metadata"))).json()
    assert made.keys() == make(shop).json().keys()
    code, other = shop.qr_code(), shop.qr_code()
    for each_code in (code, other):
        bank.notify(each_code)
    refund = {"payment_id": code["payment_id"]} | dict.fromkeys(("destination", "note", "reason", "amount"))
    assert shop.post("/v1/refunds", refund).json()["amount"] == code["amount"]
    withdrawal = shop.post("/v1/withdrawals", withdrawal_request(reference=None, metadata=None)).json()
    assert (withdrawal["reference"], withdrawal["metadata"]) == (None, None)
    webhook = make_endpoint(shop)
    change = {"url": None, "events": None, "status": "disabled"}
    changed = shop.patch(f"/v1/webhooks/{webhook.id}", change).json()
    assert (changed["url"], changed["events"], changed["status"]) == (webhook.url, webhook.events, "disabled")


def test_null_for_a_required_field_is_refused(shop: Shop) -> None:
    assert_amount_refused(make(shop, amount=None))
    assert refused(make(shop, currency=None), "invalid_currency", "currency")
    assert refused(shop.post("/v1/refunds", {"payment_id": None}), "invalid_payment_id", "payment_id")


def test_missing_currency_is_refused(shop: Shop) -> None:
    assert refused(shop.post(CODES, {"amount": 100}), "invalid_currency", "currency")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *each("reference", "r", "r" * 35, "ก" * 35, "😀" * 35, "👨\u200d👩\u200d👧 ❤\ufe0f"),
        ("client_name", "น" * 140),
        ("client_bank_account", "123-4-56789-0"),
        ("metadata", {"z": 1, "a": {"list": [1.5, None, True]}, "": "ก"}),
        ("metadata", {}),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_valid_body_field_is_returned_unchanged(shop: Shop, field: str, value: Any) -> None:
    made = make(shop, **{field: value}).json()
    assert made[field] == value
    assert list(made[field]) == list(value)


@pytest.mark.parametrize(
    ("request_body", "minutes"), [({}, 15), ({"expiry_minutes": 1}, 1), ({"expiry_minutes": 1440}, 1440)]
)
def test_qr_code_expires_after_expiry_minutes(
    shop: Shop, noon: datetime, request_body: dict[str, int], minutes: int
) -> None:
    with time_machine.travel(noon, tick=False):
        ends = make(shop, **request_body).json()["expires_at"]
    assert ends == (noon + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
