"""Unknown fields and query parameters are ignored, and named in the header `Ignored-Parameters`."""

import json
from typing import Any

import pytest

from tests.conftest import Shop
from tests.factories import qr_request

CODES = "/Thai/v1/qr-codes"
HEADER = "Ignored-Parameters"


def ignored(response: Any) -> str | None:
    found: str | None = response.headers.get(HEADER)
    return found


def test_request_without_unknown_parameters_has_no_header(shop: Shop) -> None:
    assert ignored(shop.post(CODES, qr_request(reference="r"))) is None
    assert ignored(shop.get("/v1/payments?limit=1")) is None
    assert ignored(shop.get("/v1/balance")) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("refernce", '"refernce";did-you-mean="reference"'),
        ("Reference", '"Reference";did-you-mean="reference"'),
        ("colour", '"colour"'),
        ("", '""'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("a\r\nSet-Cookie: x=1", '%"a%0d%0aSet-Cookie: x=1"'),
        ("ก%", '%"%e0%b8%81%25"'),
        ("x" * 41, f'"{"x" * 40}"'),
        ("tq_test_AAAAAAAAsecretsecret", '"tq_test_AAAAAAAA[redacted]"'),
    ],
)
def test_unknown_body_field_is_named(shop: Shop, name: str, expected: str) -> None:
    response = shop.post(CODES, qr_request(**{name: 1}))
    assert (response.status_code, ignored(response)) == (200, expected)


def test_header_is_in_refusals_and_replays_too(shop: Shop) -> None:
    refused = shop.post(CODES, {"ammount": 100, "currency": "THB"})
    assert (refused.status_code, ignored(refused)) == (400, '"ammount";did-you-mean="amount"')
    body = qr_request(foo=1)
    assert {ignored(shop.post(CODES, body, key="k")) for _ in range(2)} == {'"foo"'}


def test_unknown_query_parameter_is_named(shop: Shop) -> None:
    response = shop.get("/v1/payments?limt=5&status=pending")
    assert (response.status_code, ignored(response)) == (200, '"limt";did-you-mean="limit"')
    assert ignored(shop.get(f"{CODES}/{shop.qr_code()['qr_code_id']}?x=1")) == '"x"'


@pytest.mark.parametrize(
    ("destination", "expected"),
    [
        ({"bank_acount": "1"}, '"destination.bank_acount";did-you-mean="destination.bank_account"'),
        ({"colour": 1}, '"destination.colour"'),
        ({"destination": {"amount": 1}}, '"destination.destination"'),
        ({"x" * 41: 1}, f'"destination.{"x" * 28}"'),
        ({"bank_code": "014", "bank_account": "4051234567", "account_name": "Malee"}, None),
        ("014", None),
        ([{"colour": 1}], None),
    ],
)
def test_unknown_field_of_an_object_within_the_body_is_named(
    shop: Shop, destination: Any, expected: str | None
) -> None:
    body = {"payment_id": "pay_x", "destination": destination}
    assert ignored(shop.post("/v1/refunds", body)) == expected


def test_fields_of_an_object_are_named_after_those_beside_it(shop: Shop) -> None:
    nested = dict.fromkeys(map(str, range(10)), 1)
    answer = shop.post("/v1/refunds", {"payment_id": "pay_x", "destination": nested, "ammount": 1})
    named = ignored(answer) or ""
    assert named.startswith('"ammount";did-you-mean="amount", "destination.0", ')
    assert named.endswith('"destination.8", more;count=1')


def test_field_of_metadata_is_never_named(shop: Shop) -> None:
    assert ignored(shop.post(CODES, qr_request(metadata={"colour": 1}))) is None
    assert ignored(shop.get("/v1/payments?metadata[colour]=1")) is None


def test_query_parameter_with_a_key_that_it_does_not_take_is_named(shop: Shop) -> None:
    assert ignored(shop.get("/v1/payments?status[0]=pending")) == '"status[0]";did-you-mean="status"'
    assert ignored(shop.get("/v1/refunds?metadata[table]=4")) == '"metadata[table]"'


def test_unknown_query_parameter_of_a_picture_is_named(shop: Shop) -> None:
    path = f"/Thai/qr-codes/{shop.qr_code()['qr_code_id']}/image"
    for query, status in (("fromat=svg", 200), ("fromat=svg&format=gif", 400)):
        response = shop.http.get(f"{path}?{query}")
        assert (response.status_code, ignored(response)) == (status, '"fromat";did-you-mean="format"')
    assert ignored(shop.http.get(f"{path}?format=svg")) is None


def test_field_of_an_operation_without_fields_is_named(shop: Shop) -> None:
    path = f"{CODES}/{shop.qr_code()['qr_code_id']}/expire"
    assert ignored(shop.post(path, {"reason": "x"})) == '"reason"'


def test_many_unknown_names_are_counted(shop: Shop) -> None:
    names = {f"x{number}": 1 for number in range(2_000)}
    expected = ", ".join([*(f'"x{number}"' for number in range(10)), "more;count=1990"])
    assert ignored(shop.post(CODES, json.dumps(qr_request(**names)))) == expected


def test_longest_header_is_bounded(shop: Shop) -> None:
    names = [f"{number}{'ก' * 40}" for number in range(100)]
    longest = ignored(shop.post("/v1/refunds", {"destination": dict.fromkeys(names, 1)}))
    assert longest is not None
    assert 1_000 < len(longest) < 4_000
    assert longest.isascii()


def test_header_without_a_key_is_not_sent(shop: Shop) -> None:
    assert ignored(shop.http.post(CODES, "{}", content_type="application/json")) is None
