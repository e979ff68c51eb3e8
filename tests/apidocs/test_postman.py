"""The Postman collection and `llms.txt` have every operation of merchants."""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from apidocs import postman, reference
from core.http.openapi import Tag
from tests.apidocs.test_openapi import METHODS, document

Json = dict[str, Any]
VARIABLE = re.compile(r"{{(\w+)}}")


@cache
def collection() -> Json:
    return postman.collection(document(), reference.groups(document()))


def requests() -> Iterator[Json]:
    for folder in collection()["item"]:
        for item in folder["item"]:
            yield item["request"]


def merchant_operations() -> set[tuple[str, str]]:
    return {
        (method.upper(), path)
        for path, item in document()["paths"].items()
        for method in METHODS & item.keys()
        if Tag.BANKS not in item[method]["tags"]
    }


def path_of(request: Json) -> str:
    return "/" + "/".join(re.sub("^:(.*)", r"{\1}", part) for part in request["url"]["path"])


def test_postman_collection_has_each_operation_of_merchants_once() -> None:
    found = [(request["method"], path_of(request)) for request in requests()]
    assert len(found) == len(set(found))
    assert set(found) == merchant_operations()


def test_postman_requests_use_only_variables_that_are_set() -> None:
    """Answers set the ids and `qr_data`; the rest is set in the collection."""
    declared = {each["key"] for each in collection()["variable"]}
    answered = set(re.findall(r'"(\w+_id|qr_data)":', json.dumps(document()["components"]["schemas"])))
    used = set(VARIABLE.findall(json.dumps([*requests()])))
    assert used <= declared | answered


def test_postman_sends_the_secret_key_only_where_one_is_needed() -> None:
    assert collection()["auth"]["bearer"][0]["value"] == "{{secret_key}}"
    for request in requests():
        operation = document()["paths"][path_of(request)][request["method"].lower()]
        assert ("auth" not in request) == ({"secretKey": []} in operation["security"])


def test_postman_posts_have_an_idempotency_key_and_an_example() -> None:
    for request in requests():
        operation = document()["paths"][path_of(request)][request["method"].lower()]
        assert bool(request["header"]) == (request["method"] == "POST")
        assert ("body" in request) == ("requestBody" in operation)


def test_llms_text_has_each_operation_of_merchants() -> None:
    text = (reference.FOLDER / "llms.txt").read_text()
    assert set(re.findall(r"^- \[(GET|POST|PATCH|DELETE) (\S+)\]", text, re.M)) == merchant_operations()
