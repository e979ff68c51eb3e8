"""The API as a Postman collection (v2.1), made of the OpenAPI document."""

import json

from apidocs.components import PARTS, Json
from core.openapi import Tag

SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
# What banks call is signed by them.
LEFT_OUT = {Tag.BANKS}


def collection(document: Json) -> Json:
    """One folder for each tag, with one request for each operation."""
    info = document["info"]
    return {
        "info": {"name": info["title"], "description": info["description"], "schema": SCHEMA},
        **PARTS["postman"],
        "item": [
            {"name": tag["name"], "description": tag["description"], "item": _requests(document, tag["name"])}
            for tag in document["tags"]
            if tag["name"] not in LEFT_OUT
        ],
    }


def _requests(document: Json, tag: str) -> list[Json]:
    return [
        {"name": operation["summary"], "request": _request(document, path, method, operation)}
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "servers" and tag in operation["tags"]
    ]


def _request(document: Json, path: str, method: str, operation: Json) -> Json:
    shared = document["components"]["parameters"]
    parameters = [
        shared[each["$ref"].rpartition("/")[2]] if "$ref" in each else each
        for each in operation["parameters"]
    ]
    request: Json = {
        "method": method.upper(),
        "description": operation["description"],
        "header": [],
        "url": _url(path, [each for each in parameters if each["in"] == "query"]),
    }
    if {"secretKey": []} not in operation["security"]:
        request["auth"] = {"type": "noauth"}
    if any(each["name"] == "Idempotency-Key" for each in parameters):
        request["header"] = [{"key": "Idempotency-Key", "value": "{{$guid}}"}]
    contents = operation.get("requestBody", {}).get("content", {})
    example = contents.get("application/json", {}).get("example")
    if example is not None:
        named = {name: f"{{{{{name}}}}}" if _is_kept(name) else value for name, value in example.items()}
        request["body"] = {
            "mode": "raw",
            "raw": json.dumps(named, indent=2, ensure_ascii=False),
            "options": {"raw": {"language": "json"}},
        }
    return request


def _url(path: str, query: list[Json]) -> Json:
    """A variable part of the path has a variable of its name. Filters are off until somebody wants them."""
    parts = [f":{part[1:-1]}" if part.startswith("{") else part for part in path[1:].split("/")]
    return {
        "raw": "{{base_url}}/" + "/".join(parts),
        "host": ["{{base_url}}"],
        "path": parts,
        "variable": [
            {"key": name, "value": f"{{{{{name}}}}}"}
            for name in (part[1:] for part in parts if part.startswith(":"))
        ],
        "query": [
            {"key": each["name"], "value": "", "description": each["description"], "disabled": True}
            for each in query
        ],
    }


def _is_kept(name: str) -> bool:
    """Whether `KEEP_IDS` finds this field in answers."""
    return name == "qr_data" or (name.endswith("_id") and name != "token_id")
