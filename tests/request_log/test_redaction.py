"""What the request log keeps of a body and of a query."""

import json
from pathlib import Path
from typing import Any

import pytest

from request_log import redaction
from request_log.redaction import CONTAINERS, KEPT, MAX_READ, MAX_STORED

OPENAPI = Path(__file__).parents[2] / "docs" / "openapi.json"
# Fields with personal data, secrets, or any text of a merchant.
HIDDEN = {
    "account_name", "actor", "address", "authorize_uri", "bank_account", "claim_url", "client_bank_account",
    "client_name",
    "description", "details", "last_error", "metadata", "name", "note", "payer_account", "payer_name",
    "request_body", "response", "response_body", "secret", "summary", "token_id", "url",
}  # fmt: skip


def kept(given: object, *, is_ours: bool = False) -> Any:
    return json.loads(redaction.body(json.dumps(given).encode(), is_ours=is_ours))


def test_body_of_a_request_keeps_no_secret_and_no_personal_data() -> None:
    for given, stored in [
        ({"amount": 1500, "currency": "THB"}, {"amount": 1500, "currency": "THB"}),
        ({"amount": "1,500.00"}, {"amount": "1,500.00"}),
        ({"secret": "whsec_abc"}, {"secret": "[a string of 9 characters]"}),
        ({"Secret": {"value": "x"}}, {"Secret": "[an object of 1 fields]"}),
        ({"token_id": "tok_test_visa"}, {"token_id": "[a string of 13 characters]"}),
        ({"bank_account": "4051234567"}, {"bank_account": "xxxxxx4567"}),
        ({"bank_account": "405-1-23456-7"}, {"bank_account": "xxxxxx4567"}),
        ({"bank_account": 4051234567}, {"bank_account": "[a number]"}),
        ({"bank_account": None}, {"bank_account": None}),
        ({"account_name": "Somtam House"}, {"account_name": "S*** H***"}),
        ({"destination": {"name": "Somchai"}}, {"destination": {"name": "S***"}}),
        ({"destination": "Somchai"}, {"destination": "[a string of 7 characters]"}),
        ({"bank_name": "Kasikornbank"}, {"bank_name": "Kasikornbank"}),
        ({"description": "for Somchai"}, {"description": "[a string of 11 characters]"}),
        ({"metadata": {"payer": "Somchai"}}, {"metadata": "[an object of 1 fields]"}),
        ({"customer": ["Somchai"]}, {"customer": "[an array of 1 items]"}),
        ({"phone": 812345678}, {"phone": "[a number]"}),
        ({"reference": {"status": "Somchai"}}, {"reference": "[an object of 1 fields]"}),
        ({"reference": "order 17"}, {"reference": "order 17"}),
        ({"reference": "4111111111111111"}, {"reference": "...1111"}),
        ({"reference": 4051234567}, {"reference": "[a number]"}),
        ({"reference": "tq_test_abcdefgh0123456789"}, {"reference": "tq_test_abcdefgh[redacted]"}),
        ({"reference": "405-1-23456-7"}, {"reference": "...4567"}),
        ({"reference": "๔๐๕\u20111\u201123456 7\u200b"}, {"reference": "...4567"}),
        ({"reference": "for 4111 1111 1111 1111, table 4"}, {"reference": "for ...1111, table 4"}),
        ({"reference": "INV-2026-11-21/17"}, {"reference": "INV-...2117"}),
        ({"reference": "2026-11-21 B"}, {"reference": "2026-11-21 B"}),
        ({"reference": "สมชาย"}, {"reference": "สมชาย"}),
        ({"payment_id": "Somchai"}, {"payment_id": "[a string of 7 characters]"}),
        ({"qr_code_id": "สมชาย ใจดี"}, {"qr_code_id": "[a string of 10 characters]"}),
        ({"payment_id": f"pay_{'x' * 27}"}, {"payment_id": f"pay_{'x' * 27}"}),
        ({"bank_reference": "Somchai"}, {"bank_reference": "[a string of 7 characters]"}),
        ({"bank_reference": "FT26112500017"}, {"bank_reference": "FT26112500017"}),
        ({"bank_reference": "405-1-23456-7"}, {"bank_reference": "...4567"}),
        ({"status": "Somchai"}, {"status": "[a string of 7 characters]"}),
        ({"timezone": "Asia/Bangkok"}, {"timezone": "Asia/Bangkok"}),
        ({"status": "สมชาย"}, {"status": "[a string of 5 characters]"}),
        ({"start_date": "2026-11-21T12:00:00+07:00"}, {"start_date": "2026-11-21T12:00:00+07:00"}),
        ({"tq_test_abcdefgh0123456789": True}, {"tq_test_abcdefgh[redacted]": "[true]"}),
        (
            {"url": "https://user:password@shop.example/hook?token=x"},
            {"url": "https://user:[redacted]@shop.example/hook"},
        ),
        (
            {"events": ["payment.succeeded", ["x"]]},
            {"events": ["payment.succeeded", "[an array of 1 items]"]},
        ),
        ([1, "a", None], "[an array of 3 items]"),
        ("Somchai", "[a string of 7 characters]"),
    ]:
        assert kept(given) == stored


def test_body_of_a_response_keeps_what_the_service_made() -> None:
    given = {"payment_id": "pay_x", "available": 12_345_678_901, "payer": {"name": "Somchai Jaidee"}}
    assert kept(given, is_ours=True) == given | {"payer": {"name": "S*** J***"}}


def test_settlement_and_its_payments_are_kept() -> None:
    words = json.loads(OPENAPI.read_text())["paths"]["/v1/settlements"]["get"]["responses"]["200"]
    listed = words["content"]["application/json"]["example"]
    assert listed["settlements"]
    assert kept(listed, is_ours=True) == listed


@pytest.mark.parametrize("name", ["reference", "message", "detail"])
def test_response_that_repeats_a_request_keeps_no_secret(name: str) -> None:
    assert kept({name: "tq_test_abcdefgh0123456789"}, is_ours=True) == {name: "tq_test_abcdefgh[redacted]"}


def test_personal_fields_of_the_api_are_hidden() -> None:
    """As is each field that nobody has added to KEPT."""
    known = set(names_of(json.loads(OPENAPI.read_text())))
    assert known - KEPT - CONTAINERS >= HIDDEN
    assert (KEPT | CONTAINERS) - known == set()


def names_of(schema: object) -> list[str]:
    """The names of all properties and query parameters."""
    if isinstance(schema, list):
        return [name for each in schema for name in names_of(each)]
    if not isinstance(schema, dict):
        return []
    properties = schema.get("properties")
    own = list(properties) if isinstance(properties, dict) else []
    parameter = [schema["name"]] if schema.get("in") == "query" else []
    return own + parameter + [name for each in schema.values() for name in names_of(each)]


def test_escaped_field_name_is_masked() -> None:
    text = redaction.body(rb'{"\u0073ecret":"x"}', is_ours=False)
    assert text == '{"secret":"[a string of 1 characters]"}'


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        (b"", ""),
        (b"secret", "[6 bytes, not JSON]"),
        (b"\xff\x00", "[2 bytes, not JSON]"),
        (b'"' + b"a" * MAX_READ + b'"', f"[{MAX_READ + 2} bytes]"),
        (b"[" * 2000, "[2000 bytes, not JSON]"),
    ],
)
def test_body_that_cannot_be_masked_is_not_kept(body: bytes, stored: str) -> None:
    assert redaction.body(body, is_ours=False) == stored


def test_long_body_is_cut() -> None:
    text = redaction.body(json.dumps({"reference": "x" * 5_000}).encode(), is_ours=False)
    assert len(text) < MAX_STORED + 30
    assert text.endswith("... [5017 bytes]")


def test_deep_body_is_cut() -> None:
    given: object = {}
    for _ in range(100):
        given = {"data": given}
    assert json.dumps(kept(given)).count("data") < 20


def test_control_characters_stay_escaped() -> None:
    assert "\0" not in redaction.body(rb'{"reference":"\u0000"}', is_ours=False)


@pytest.mark.parametrize(
    ("query", "stored"),
    [
        ("status=pending&limit=20", "status=pending&limit=20"),
        ("reference=0812345678", "reference=...5678"),
        ("payer=Somchai&metadata[name]=Jaidee", "payer=[a+string+of+7+characters]&metadata[name]=[a+"),
        ("api_key=tq_test_abcdefgh0123456789", "api_key=[a+string+of+26+characters]"),
        ("status=%00", "status=%00"),
        ("payment_id=Somchai", "payment_id=[a+string+of+7+characters]"),
        ("reference=405-1-23456-7", "reference=...4567"),
    ],
)
def test_query_keeps_the_values_of_known_parameters(query: str, stored: str) -> None:
    assert redaction.query(query).startswith(stored)
    assert "Jaidee" not in redaction.query(query)


@pytest.mark.parametrize(
    ("path", "stored"),
    [
        (f"/Thai/v1/payments/pay_{'x' * 27}", f"/Thai/v1/payments/pay_{'x' * 27}"),
        ("/v1/qr-codes/", "/v1/qr-codes/"),
        ("/v1/payments/Somchai", "/v1/payments/[a string of 7 characters]"),
        ("/v1/payments/สมชาย ใจดี/cancel", "/v1/payments/[a string of 10 characters]/cancel"),
        ("/v1/payments/405-1-23456-7", "/v1/payments/...4567"),
        ("/v1/requests/tq_test_abcdefgh0123456789", "/v1/requests/tq_test_abcdefgh%5Bredacted%5D"),
    ],
)
def test_path_keeps_words_of_ours_and_ids(path: str, stored: str) -> None:
    assert redaction.path(path) == stored


def test_message_about_an_id_that_is_none_does_not_repeat_it() -> None:
    for text in ("No payment {}.", "No QR code {}.", "No delivery {} of this webhook."):
        wrong = kept({"error": {"message": text.format("Somchai Jaidee")}}, is_ours=True)
        assert wrong == {"error": {"message": text.format("[a string of 14 characters]")}}
        right = {"error": {"message": text.format(f"pay_{'x' * 27}")}}
        assert kept(right, is_ours=True) == right


@pytest.mark.parametrize(
    ("message", "stored"),
    [
        (
            'after must be an id of this list. Received: "Somchai Jaidee".',
            "after must be an id of this list. Received: [a string of 14 characters].",
        ),
        (
            'status must be active. Received: "a\\"b".',
            "status must be active. Received: [a string of 4 characters].",
        ),
        ('is unknown; received "Somchai"', "is unknown; received [a string of 7 characters]"),
        (
            'must be. Received: bank_code: "Somchai".',
            "must be. Received: bank_code: [a string of 7 characters].",
        ),
        (
            'is unknown. Received: "Somchai Bearer [redacted]',
            "is unknown. Received: [a string of 25 characters]",
        ),
        ("amount is out of range; received 99", "amount is out of range; received 99"),
        ("Received: a string of 14 characters.", "Received: a string of 14 characters."),
    ],
)
@pytest.mark.parametrize("name", ["message", "detail"])
def test_message_of_an_error_does_not_repeat_what_it_received(name: str, message: str, stored: str) -> None:
    assert kept({"error": {name: message}}, is_ours=True) == {"error": {name: stored}}


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("Somchai-4051234567", "S...-...4567"),
        ("till-7.0042", "till-7.0042"),
        ("12345678-1234-1234-1234-123456789012", "12345678-1234-1234-1234-123456789012"),
        ("req_123456789012345678901234567", "req_123456789012345678901234567"),
    ],
)
def test_request_id_of_a_client_keeps_no_name_and_no_long_number(given: str, stored: str) -> None:
    assert redaction.request_id(given) == stored
