"""The description of the API: valid, whole, closed, and the same as what is committed."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
import yaml
from django.core.management import call_command
from django.urls import Resolver404, URLPattern, get_resolver, resolve
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from apidocs import reference
from apidocs.error_responses import CODES_OF_COMMANDS
from banks import TransferResult
from core.errors import CATALOGUE
from core.http.openapi import Tag, operation_of
from core.thai import thaiqr
from core.thai.slips import parse_slip
from idempotency.errors import InvalidIdempotencyKey
from idempotency.views import read_key
from merchants.models import HoldsPayers
from merchants.services import set_policy
from tests.conftest import SandboxBankClient, Shop
from tests.refunds.builders import RefundShop, send_due_refunds
from tests.transfers.conftest import served_by
from tests.withdrawals.builders import event_data_of, fund, send_due_withdrawals, withdrawn
from webhooks.models import Event, EventType

CODES_OF_NO_OPERATION = {"method_not_allowed"}  # of methods without a description

__all__ = ["served_by"]
Json = dict[str, Any]
METHODS = {"get", "post", "patch", "delete"}
# A merchant's bank authenticates by a secret in the path and by its own method, which no scheme can describe.
LINKED_NOTIFICATION = "POST /banks/{bank}/notifications/{secret}"
PLACEHOLDER = re.compile(r"<\w+:(\w+)>")


@cache
def document() -> Json:
    return reference.document()


def operations() -> Iterator[tuple[str, Json]]:
    for path, item in document()["paths"].items():
        for method in METHODS & item.keys():
            yield f"{method.upper()} {path}", item[method]


def resolved(part: Json) -> Json:
    while "$ref" in part:
        found: Any = document()
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        part = found
    return part


def contents() -> Iterator[tuple[str, Json]]:
    """Every body that the document describes: of requests, answers and messages."""
    for name, operation in operations():
        if "requestBody" in operation:
            yield from _contents_of(f"{name} request", operation["requestBody"])
        for status, response in operation["responses"].items():
            yield from _contents_of(f"{name} {status}", resolved(response))
    for name, item in document()["webhooks"].items():
        yield from _contents_of(name, item["post"]["requestBody"])


def _contents_of(name: str, body: Json) -> Iterator[tuple[str, Json]]:
    for media_type, content in body.get("content", {}).items():
        yield f"{name} {media_type}", content


def complaints(schema: Json, value: Any) -> list[str]:
    """What is wrong with a value. A field that the schema does not name is wrong here, unlike for clients."""
    whole = closed(schema | {"components": document()["components"]})
    return [error.message for error in Draft202012Validator(whole).iter_errors(value)]


def closed(schema: Any) -> Any:
    """The schema whose objects have no fields but those that it names."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: closed(part) for name, part in schema.items()}
    is_object = schema.get("type") == "object" and "properties" in schema
    return {"additionalProperties": False} | parts if is_object else parts


def errors() -> Iterator[tuple[int, str, Json]]:
    """The status, the code and the example of each error of each operation."""
    for _, operation in operations():
        for status, response in operation["responses"].items():
            content = resolved(response).get("content", {}).get("application/json", {})
            for code, example in content.get("examples", {}).items():
                yield int(status), code, example["value"]["error"]


@pytest.mark.slow
def test_openapi_document_is_valid_3_1(tmp_path: Path) -> None:
    assert document()["openapi"].startswith("3.1")
    validate(document())
    output = StringIO()
    call_command(
        "spectacular",
        "--validate",
        "--fail-on-warn",
        format="openapi-json",
        file=str(tmp_path / "made.json"),
        stderr=output,
    )
    assert output.getvalue() == ""


@pytest.mark.slow
def test_committed_openapi_document_is_up_to_date() -> None:
    for path, text in reference.reference_files().items():
        assert path.read_text() == text, "run `make schema`"


@pytest.mark.slow
def test_every_api_route_is_in_the_openapi_document() -> None:
    described = {f"{form}{path}" for path in document()["paths"] for form in ("", "/Thai")}
    for pattern in get_resolver().url_patterns:
        is_api = isinstance(pattern, URLPattern) and (
            hasattr(pattern.callback, "actions") or operation_of(pattern.callback) is not None
        )
        if is_api:
            path = "/" + PLACEHOLDER.sub(r"{\1}", str(pattern.pattern))
            assert path in described


def test_openapi_operations_are_described_once() -> None:
    names = [operation["operationId"] for _, operation in operations()]
    assert len(names) == len(set(names))
    # The interface shows these without a version. `qr_image_url` has the second one.
    without_version = [path for path in document()["paths"] if path.startswith("/Thai")]
    assert without_version == ["/Thai/qr-codes", "/Thai/qr-codes/{qr_code_id}/image"]


class Yaml12Loader(yaml.SafeLoader):
    """Reads the core schema of YAML 1.2 (section 10.3.2), in which 008 is the number 8."""

    yaml_implicit_resolvers = {}


for kind, pattern in {
    "null": "~|null|Null|NULL|",
    "bool": "true|True|TRUE|false|False|FALSE",
    "int": "[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
}.items():
    Yaml12Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(f"^(?:{pattern})$"), None)
Yaml12Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(node.value))


@pytest.mark.slow
def test_yaml_document_is_the_json_document_for_readers_of_yaml_1_1_and_1_2() -> None:
    """`008` without quotes is a text in YAML 1.1, and the number 8 in YAML 1.2."""
    published = reference.published()
    plain = orjson.loads(published["openapi.json"])
    for loader in (yaml.SafeLoader, Yaml12Loader):
        assert yaml.load(published["openapi.yaml"], Loader=loader) == plain
    texts = [
        "008",
        "069",
        "1e3",
        "1.5",
        ".5",
        "0o17",
        "0x1F",
        "y",
        "N",
        "no",
        "null",
        "~",
        "",
        "2026-11-21",
        "1:30",
    ]
    written = reference.as_yaml({"texts": texts, "numbers": [8, -1, 1.5, 1e30], "others": [True, None]})
    for loader in (yaml.SafeLoader, Yaml12Loader):
        assert yaml.load(written, Loader=loader)["texts"] == texts


def test_idempotency_key_of_the_openapi_document_is_that_of_the_code() -> None:
    pattern = re.compile(document()["components"]["parameters"]["IdempotencyKey"]["schema"]["pattern"])
    for key in (
        "order-17",
        "คำสั่งซื้อ 17",
        " a ",
        "é",
        "😀",
        "  ",
        "\u00a0",
        "a\tb",
        "a\x7f",
        "\x85",
        "",
        "a\nb",
    ):
        try:
            read_key(
                cast(Any, SimpleNamespace(META={"HTTP_IDEMPOTENCY_KEY": key.encode().decode("latin-1")}))
            )
        except InvalidIdempotencyKey:
            assert not pattern.search(key), key
        else:
            assert pattern.search(key), key


def test_each_path_answers_below_all_of_its_openapi_servers() -> None:
    whole = [server["url"] for server in document()["servers"]]
    assert whole == ["/", "/Thai"]
    for path, item in document()["paths"].items():
        answered = {form for form in ("", "/Thai") if is_routed(form + path)}
        servers = item.get("servers", document()["servers"])
        assert answered == {server["url"].rstrip("/") for server in servers}, path


def is_routed(path: str) -> bool:
    try:
        resolve(re.sub(r"{\w+}", "x", path))
    except Resolver404:
        return False
    return True


def test_every_openapi_operation_has_summary_and_security() -> None:
    for name, operation in operations():
        assert operation["summary"] and operation["description"], name
        assert operation["tags"][0] in list(Tag), name
        if name != LINKED_NOTIFICATION:
            assert ("401" in operation["responses"]) == bool(operation["security"]), name


def test_security_schemes_of_openapi_operations_are_described_and_all_used() -> None:
    used = {scheme for _, operation in operations() for each in operation["security"] for scheme in each}
    assert used == set(document()["components"]["securitySchemes"])


def test_openapi_links_match_the_parameters_of_the_linked_operation() -> None:
    by_name = {operation["operationId"]: operation for _, operation in operations()}
    for _, operation in operations():
        for link in operation["responses"].get("200", {}).get("links", {}).values():
            taken = {p["name"] for p in map(resolved, by_name[link["operationId"]]["parameters"])}
            assert set(link.get("parameters", {})) <= taken


def test_documented_error_codes_equal_the_catalogue() -> None:
    documented = {code for _, code, _ in errors()}
    assert documented | CODES_OF_COMMANDS | CODES_OF_NO_OPERATION == set(CATALOGUE)
    assert not documented & (CODES_OF_COMMANDS | CODES_OF_NO_OPERATION)


def test_documented_errors_have_status_and_type_of_the_catalogue() -> None:
    for status, code, example in errors():
        kind = CATALOGUE[code]
        assert (status, code, example["type"]) == (kind.status, example["code"], kind.type)


@pytest.mark.slow
def test_openapi_examples_match_the_schema() -> None:
    for name, content in contents():
        examples = [content["example"]] if "example" in content else _values(content)
        assert examples or "banks" in name or "get_" not in name, name
        for example in examples:
            assert complaints(content["schema"], example) == [], name


def _values(content: Json) -> list[Any]:
    return [example["value"] for example in content.get("examples", {}).values()]


def test_openapi_example_of_qr_data_is_valid() -> None:
    for _, content in contents():
        if "qr_data" in content.get("example", {}):
            text = content["example"]["qr_data"]
            is_slip = "SlipRequest" in content["schema"].get("$ref", "")
            assert parse_slip(text) if is_slip else thaiqr.parse(text).amount == 150_000


def test_response_schemas_are_open_so_that_new_fields_break_no_client() -> None:
    assert '"additionalProperties":false' not in orjson.dumps(document()).decode()


def test_every_object_with_an_amount_also_has_it_in_baht() -> None:
    for name, schema in document()["components"]["schemas"].items():
        if "amount" in schema.get("properties", {}) and not name.endswith("Request"):
            assert "amount_display" in schema["required"], name


def test_openapi_amounts_ids_and_times_have_format_and_limits() -> None:
    for name, schema in document()["components"]["schemas"].items():
        for field, shape in schema.get("properties", {}).items():
            if field == "amount":
                assert {"minimum", "maximum"} <= set(shape), name
            if field.endswith(("_id", "_at")) and not name.endswith("Request"):
                assert "pattern" in shape, f"{name}.{field}"


@pytest.mark.slow
def test_payment_webhooks_match_the_openapi_schema(shop: Shop, bank: SandboxBankClient) -> None:
    """But for that of a fee that is known later, see `test_fees.py`."""
    set_policy(shop.merchant.pk, holds_payers=HoldsPayers.NO)
    paid = shop.qr_code(reference="order 17", metadata={"table": 4}, client_name="Somying Jaidee")
    declined, ended, odd = shop.qr_code(), shop.qr_code(), shop.qr_code()
    bank.notify(paid)
    shop.post(f"/v1/payments/{paid['payment_id']}/lift-hold")
    bank.notify(odd, satang=1)
    (found,) = shop.payment(odd["payment_id"])["exceptions"]
    shop.post(f"/v1/payments/{odd['payment_id']}/exceptions/{found['exception_id']}/accept")
    bank.notify(declined, type="decline")
    shop.post(f"/v1/qr-codes/{ended['qr_code_id']}/expire")
    sent = [orjson.loads(bytes(event.body)) for event in Event.objects.all()]
    assert {message["event"] for message in sent} == {kind for kind in EventType if "payment." in kind} - {
        EventType.PAYMENT_FEE_KNOWN
    }
    for message in sent:
        body = document()["webhooks"][message["event"]]["post"]["requestBody"]
        assert complaints(body["content"]["application/json"]["schema"], message) == []


@pytest.mark.slow
def test_refund_webhooks_match_the_openapi_schema(
    shop: Shop, bank: SandboxBankClient, served_by: Callable[..., Any]
) -> None:
    served_by(sends=[TransferResult("succeeded", "b-1"), TransferResult("failed")])
    refund_shop = RefundShop(shop, bank)
    payment_id = refund_shop.paid()
    refund_shop.refund(payment_id, amount=1, reason="other", note="n", metadata={"table": 4})
    refund_shop.refund(payment_id)
    send_due_refunds()
    events = Event.objects.filter(type__startswith="refund.")
    sent = [orjson.loads(bytes(event.body)) for event in events]
    assert {message["event"] for message in sent} == {kind for kind in EventType if "refund." in kind}
    for message in sent:
        body = document()["webhooks"][message["event"]]["post"]["requestBody"]
        assert complaints(body["content"]["application/json"]["schema"], message) == []


@pytest.mark.slow
def test_withdrawal_webhooks_match_the_openapi_schema(
    shop: Shop, bank: SandboxBankClient, served_by: Callable[..., Any]
) -> None:
    served_by(sends=[TransferResult("succeeded", "b-1"), TransferResult("failed")])
    fund(shop, bank, 300_000)
    made = [withdrawn(shop), withdrawn(shop, reference="PAYOUT-1", metadata={"week": 47})]
    send_due_withdrawals(2)
    sent = [message for each in made for message in event_data_of(each)]
    assert {message["event"] for message in sent} == {kind for kind in EventType if "withdrawal." in kind}
    for message in sent:
        body = document()["webhooks"][message["event"]]["post"]["requestBody"]
        assert complaints(body["content"]["application/json"]["schema"], message) == []
