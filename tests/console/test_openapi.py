"""The description of the API: valid, whole, closed, and the same as what is committed."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import orjson
from django.core.management import call_command
from django.urls import URLPattern, get_resolver
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from openapi_spec_validator import validate

from banks import Word
from console import reference
from console.refusals import OF_COMMANDS, OF_NO_OPERATION
from core import thaiqr
from core.errors import CATALOGUE
from core.openapi import TAGS, operation_of
from tests.conftest import BankCaller, Shop
from tests.refunds.cast import Counter, carry_out
from tests.transfers.conftest import served_by
from tests.withdrawals.cast import fund, told, withdrawn, work
from webhooks.event_types import EventType
from webhooks.models import Event

__all__ = ["served_by"]
Json = dict[str, Any]
PLACEHOLDER = re.compile(r"<\w+:(\w+)>")


@cache
def document() -> Json:
    return reference.document()


def operations() -> Iterator[tuple[str, Json]]:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


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
    whole = schema | {"components": document()["components"]}
    return [error.message for error in Draft202012Validator(whole).iter_errors(value)]


def error_codes() -> Iterator[tuple[int, Json, list[str]]]:
    for _, operation in operations():
        for status, response in operation["responses"].items():
            content = resolved(response).get("content", {}).get("application/json")
            schema = (content or {}).get("schema", {})
            error = schema.get("oneOf", [schema])[-1].get("properties", {}).get("error")
            if error is not None:
                yield int(status), error["properties"], error["required"]


def test_it_is_valid_openapi_3_1_and_made_without_a_warning(tmp_path: Path) -> None:
    assert document()["openapi"].startswith("3.1")
    validate(document())
    said = StringIO()
    call_command(
        "spectacular",
        "--validate",
        "--fail-on-warn",
        format="openapi-json",
        file=str(tmp_path / "made.json"),
        stderr=said,
    )
    assert said.getvalue() == ""


def test_the_committed_reference_is_fresh() -> None:
    for path, text in reference.files().items():
        assert path.read_text() == text, "run `make schema`"


def test_every_route_of_the_api_is_described() -> None:
    described = set(document()["paths"])
    for pattern in get_resolver().url_patterns:
        is_api = isinstance(pattern, URLPattern) and (
            hasattr(pattern.callback, "actions") or operation_of(pattern.callback) is not None
        )
        if is_api:
            assert "/" + PLACEHOLDER.sub(r"{\1}", str(pattern.pattern)) in described


def test_both_path_forms_are_described_under_names_of_their_own() -> None:
    names = [operation["operationId"] for _, operation in operations()]
    assert len(names) == len(set(names))
    paths = document()["paths"]
    for path in [path for path in paths if path.startswith("/Thai/v1/")]:
        for method, operation in paths[path].items():
            plain = paths[path.removeprefix("/Thai")][method]
            assert plain["operationId"] == f"{operation['operationId']}_v1"


def test_every_operation_says_what_it_does_and_who_may_ask() -> None:
    for name, operation in operations():
        assert operation["summary"] and operation["description"], name
        assert operation["tags"][0] in list(TAGS), name
        assert ("AuthenticationFailed" in str(operation["responses"])) == bool(operation["security"]), name


def test_every_link_leads_to_an_operation_that_takes_its_parameters() -> None:
    by_name = {operation["operationId"]: operation for _, operation in operations()}
    for _, operation in operations():
        for link in operation["responses"].get("200", {}).get("links", {}).values():
            taken = {p["name"] for p in map(resolved, by_name[link["operationId"]]["parameters"])}
            assert set(link.get("parameters", {})) <= taken


def test_every_code_of_the_catalogue_is_documented_and_no_other() -> None:
    documented = {code for _, error, _ in error_codes() for code in error["code"]["enum"]}
    assert documented | OF_COMMANDS | OF_NO_OPERATION == set(CATALOGUE)
    assert not documented & (OF_COMMANDS | OF_NO_OPERATION)


def test_every_refusal_has_the_status_and_the_type_of_the_catalogue() -> None:
    for status, error, required in error_codes():
        kinds = [CATALOGUE[code] for code in error["code"]["enum"]]
        assert {kind.status for kind in kinds} == {status}
        assert {kind.type for kind in kinds} == set(error["type"]["enum"])
        assert required == ["code", "message", "type"]


def test_every_body_has_an_example_and_every_example_fits() -> None:
    for name, content in contents():
        examples = [content["example"]] if "example" in content else _values(content)
        assert examples or "banks" in name or "get_" not in name, name
        for example in examples:
            assert complaints(content["schema"], example) == [], name


def _values(content: Json) -> list[Any]:
    return [example["value"] for example in content.get("examples", {}).values()]


def test_the_example_of_a_code_can_be_scanned() -> None:
    for _, content in contents():
        if "qr_data" in content.get("example", {}):
            assert thaiqr.parse(content["example"]["qr_data"]).amount == 150_000


def test_every_object_of_an_answer_is_closed_but_metadata() -> None:
    for name, schema in document()["components"]["schemas"].items():
        assert name.endswith("Request") or schema["additionalProperties"] is False, name
    for name, content in contents():
        for part in [] if "request" in name else _objects(content["schema"]):
            assert part["additionalProperties"] is False, name


def _objects(schema: Any) -> Iterator[Json]:
    """The objects in a schema that name their properties."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema:
            yield schema
        for part in schema.values():
            yield from _objects(part)


def test_amounts_ids_and_times_are_typed_narrowly() -> None:
    for name, schema in document()["components"]["schemas"].items():
        for field, shape in schema.get("properties", {}).items():
            if field == "amount":
                assert {"minimum", "maximum"} <= set(shape), name
            if field.endswith(("_id", "_at")) and not name.endswith("Request"):
                assert "pattern" in shape, f"{name}.{field}"


def test_what_is_sent_about_payments_is_described(shop: Shop, bank: BankCaller) -> None:
    paid = shop.qr_code(reference="order 17", metadata={"table": 4})
    declined, ended = shop.qr_code(), shop.qr_code()
    bank.tell(paid)
    bank.tell(declined, type="decline")
    shop.post(f"/v1/qr-codes/{ended['qr_code_id']}/expire")
    sent = [orjson.loads(bytes(event.body)) for event in Event.objects.all()]
    assert {message["event"] for message in sent} == {kind for kind in EventType if "payment." in kind}
    for message in sent:
        body = document()["webhooks"][message["event"]]["post"]["requestBody"]
        assert complaints(body["content"]["application/json"]["schema"], message) == []


def test_what_is_sent_about_refunds_is_described(
    shop: Shop, bank: BankCaller, served_by: Callable[..., Any]
) -> None:
    served_by(sends=[Word("succeeded", "b-1"), Word("failed")])
    counter = Counter(shop, bank)
    payment_id = counter.paid()
    counter.refund(payment_id, amount=1, reason="other", note="n", metadata={"table": 4})
    counter.refund(payment_id)
    carry_out()
    events = Event.objects.filter(type__startswith="refund.")
    sent = [orjson.loads(bytes(event.body)) for event in events]
    assert {message["event"] for message in sent} == {kind for kind in EventType if "refund." in kind}
    for message in sent:
        body = document()["webhooks"][message["event"]]["post"]["requestBody"]
        assert complaints(body["content"]["application/json"]["schema"], message) == []


def test_what_is_sent_about_withdrawals_is_described(
    shop: Shop, bank: BankCaller, served_by: Callable[..., Any]
) -> None:
    served_by(sends=[Word("succeeded", "b-1"), Word("failed")])
    fund(shop, bank, 300_000)
    made = [withdrawn(shop), withdrawn(shop, reference="PAYOUT-1", metadata={"week": 47})]
    work(2)
    sent = [message for each in made for message in told(each)]
    assert {message["event"] for message in sent} == {kind for kind in EventType if "withdrawal." in kind}
    for message in sent:
        body = document()["webhooks"][message["event"]]["post"]["requestBody"]
        assert complaints(body["content"]["application/json"]["schema"], message) == []
