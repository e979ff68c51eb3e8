"""The OpenAPI document of the service, as tests of clients compare with it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.stack import ROOT

DOCUMENT: dict[str, Any] = json.loads((ROOT / "docs" / "openapi.json").read_text())
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
METHODS = ("get", "post", "patch", "delete")


@dataclass(frozen=True)
class Operation:
    """One operation. `parameters` are those of path and query; `fields` those of the body."""

    id: str
    method: str
    path: str
    parameters: frozenset[str]
    fields: frozenset[str]


def merchant_operations() -> dict[str, Operation]:
    """The operations that need a key of a merchant, by their ids. Each has a path with a version."""
    return {each.id: each for each in _operations() if not each.id.endswith("_without_version")}


def _operations() -> Iterator[Operation]:
    for path, item in DOCUMENT["paths"].items():
        for method in METHODS:
            described = item.get(method, {})
            if "x-scope" in described:
                shared = DOCUMENT["components"]["parameters"]
                given = [
                    shared.get(each.get("$ref", "").rpartition("/")[2], each)
                    for each in described["parameters"]
                ]
                named = {each["name"] for each in given if each["in"] != "header"}
                fields = _fields(described)
                yield Operation(described["operationId"], method.upper(), path, frozenset(named), fields)


def _fields(described: dict[str, Any]) -> frozenset[str]:
    content = described.get("requestBody", {}).get("content", {})
    return frozenset(name for each in content.values() for name in properties(each["schema"]))


def properties(schema: dict[str, Any]) -> dict[str, Any]:
    """The properties of a schema, also of one that offers alternatives."""
    if "$ref" in schema:
        return properties(SCHEMAS[schema["$ref"].rpartition("/")[2]])
    found = dict(schema.get("properties", {}))
    for part in (*schema.get("oneOf", ()), *schema.get("allOf", ())):
        found |= properties(part)
    return found


def values_of(name: str, field: str) -> set[str]:
    """The values that a field of a schema may have."""
    schema = properties(SCHEMAS[name])[field]
    return set(schema.get("items", schema)["enum"]) - {None}
