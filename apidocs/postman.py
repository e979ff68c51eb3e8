"""The API as a Postman collection (v2.1), made of the OpenAPI document."""

import json
from collections.abc import Iterable

from apidocs.components import PARTS, Json

SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"


def collection(document: Json, groups: Iterable[tuple[Json, list[tuple[str, str, Json]]]]) -> Json:
    """One folder for each tag, with one request for each operation."""
    info = document["info"]
    return {
        "info": {"name": info["title"], "description": info["description"], "schema": SCHEMA},
        **PARTS["postman"],
        "item": [
            {
                "name": tag["name"],
                "description": tag["description"],
                "item": [
                    {"name": operation["summary"], "request": _request(document, path, method, operation)}
                    for method, path, operation in operations
                ],
            }
            for tag, operations in groups
        ],
    }


def _request(document: Json, path: str, method: str, operation: Json) -> Json:
    shared = document["components"]["parameters"]
    parameters = [
        shared[each["$ref"].rpartition("/")[2]] if "$ref" in each else each
        for each in operation["parameters"]
    ]
    url = _url(path, [each for each in parameters if each["in"] == "query"])
    request: Json = {"method": method, "description": operation["description"], "header": [], "url": url}
    if {"secretKey": []} not in operation["security"]:
        request["auth"] = {"type": "noauth"}
    if any(each["name"] == "Idempotency-Key" for each in parameters):
        request["header"] = [{"key": "Idempotency-Key", "value": "{{$guid}}"}]
    contents = operation.get("requestBody", {}).get("content", {})
    example = contents.get("application/json", {}).get("example")
    if example is not None:
        named = {name: f"{{{{{name}}}}}" if _is_kept(name) else value for name, value in example.items()}
        text = json.dumps(named, indent=2, ensure_ascii=False)
        request["body"] = {"mode": "raw", "raw": text, "options": {"raw": {"language": "json"}}}
    return request


def _url(path: str, query: list[Json]) -> Json:
    """A variable part of the path has a variable of its name. Filters are off until somebody wants them."""
    parts = [f":{part[1:-1]}" if part.startswith("{") else part for part in path[1:].split("/")]
    return {
        "raw": "{{base_url}}/" + "/".join(parts),
        "host": ["{{base_url}}"],
        "path": parts,
        "variable": [
            {"key": part[1:], "value": f"{{{{{part[1:]}}}}}"} for part in parts if part.startswith(":")
        ],
        "query": [
            {"key": each["name"], "value": "", "description": each["description"], "disabled": True}
            for each in query
        ],
    }


def _is_kept(name: str) -> bool:
    """Whether the script of the collection finds this field in answers."""
    return name == "qr_data" or (name.endswith("_id") and name != "token_id")
