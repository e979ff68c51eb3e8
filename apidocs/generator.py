"""Generates the OpenAPI document from the URL table and the operations beside the views."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

from django.urls import URLPattern, get_resolver
from drf_spectacular.drainage import error
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentRegistry

from apidocs import error_responses, object_schemas, webhook_messages
from apidocs.components import PARTS, Json
from core.http.openapi import Link, Operation, Tag, operation_of
from core.http.responses import CSV, JSON
from merchants.api import MerchantViewSet
from merchants.errors import AuthenticationFailed

SHARED_BY = 3  # operations with the same parameter
LIMIT_HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
METHODS = ("post", "get", "patch", "delete")  # the framework has them in a set without order
AS_CSV = (
    "With `Accept: text/csv` the answer is a file of up to 5,000 rows, with amounts in satang and baht; its "
    '`Link` header (`rel="next"`) has the URL of the next one.'
)
COUNTRY = "/Thai"
# Each operation is described once. The paths of the merchant API work below both servers.
SERVERS: list[Json] = [
    {"url": "/", "description": "This service"},
    {"url": COUNTRY, "description": "The same with the country in the path: /Thai/v1/..."},
]


def _security(operation: Operation) -> list[Json]:
    """A key, a signature, the optional monitoring token, or nothing."""
    if operation.scope:
        return [{"secretKey": []}]
    if operation.signature:
        return [{operation.signature.value: []}]
    return [{}, {"monitoringToken": []}] if AuthenticationFailed.code in operation.errors else []


class OperationSchema(AutoSchema):
    """One row of the URL table as an OpenAPI operation."""

    def get_operation(
        self, path: str, path_regex: str, path_prefix: str, method: str, registry: ComponentRegistry
    ) -> Json | None:
        self.registry, self.path, self.method = registry, path, method.upper()
        message = operation_of(getattr(self.view, self.view.action))  # type: ignore[attr-defined]
        if message is None:
            error(f"{method} {path} is not documented")
            return None
        self.is_merchant_api = isinstance(self.view, MerchantViewSet)
        self.is_once = self.is_merchant_api and self.method == "POST"
        scope = f" The key needs the scope `{message.scope.value}`." if message.scope else ""
        as_csv = f" {AS_CSV}" if message.is_list else ""
        headers = ["RequestId", *(["IdempotencyKey"] if self.is_once else [])]
        operation = {
            "operationId": message.name,
            "summary": message.summary,
            "description": message.description + as_csv + scope,
            "tags": [message.tag.value],
            "parameters": [
                *(
                    {"name": name, "in": "path", "required": True, "schema": PARTS["path_parameters"][name]}
                    for name in re.findall(r"{(\w+)}", path)
                ),
                *self._query(message),
                *({"$ref": f"#/components/parameters/{name}"} for name in headers),
            ],
            "requestBody": self._body(message),
            "security": _security(message),
            "x-scope": message.scope.value if message.scope else None,
            "responses": self._responses(message),
        }
        return {name: value for name, value in operation.items() if value is not None}

    def _query(self, operation: Operation) -> list[Json]:
        if operation.query is None:
            return []
        fields = self._map_serializer(operation.query(), "request")["properties"]  # type: ignore[no-untyped-call]
        return [
            {"name": name, "in": "query", "description": schema.pop("description", ""), "schema": schema}
            | ({"style": "deepObject", "explode": True} if schema.get("type") == "object" else {})
            for name, schema in fields.items()
        ]

    def _body(self, operation: Operation) -> Json | None:
        if operation.body is not None:
            body = self.resolve_serializer(operation.body.serializer, "request")
            _allow_null(body.schema)
            needed = not body.schema.keys().isdisjoint(("required", "oneOf"))
            content = {JSON: {"schema": body.ref, "example": operation.body.example}}
            content |= _media_types(operation.request_contents)
            return {"required": needed, "content": content}
        if operation.request_contents:
            return {"content": _media_types(operation.request_contents)}
        return None

    def _responses(self, operation: Operation) -> Json:
        is_ours, method = self.is_merchant_api, str(self.method)
        kinds = error_responses.errors_of(operation, is_merchant_api=is_ours, method=method)
        by_status = error_responses.by_status(kinds)
        alone = [each for each in kinds if each.status not in operation.responses]
        found = error_responses.responses(operation.name, alone, self.registry)
        for status, contents in operation.responses.items():
            errors: Json = {}
            if status in by_status:
                errors = error_responses.response(status, by_status[status], self.registry)["content"]
            found[str(status)] = self._answer(status, _merge_contents(_media_types(contents), errors))
        if answer := operation.response:
            schema = object_schemas.reference(answer.shape, self.registry)
            content: Json = {JSON: {"schema": schema, "example": answer.example}}
            content |= _media_types(operation.responses.get(200, {}))
            if operation.is_list:
                content[CSV] = {"schema": {"type": "string"}}
            found["200"] = self._answer(200, content, operation.links)
            if operation.is_list:
                found["200"]["headers"] |= error_responses.headers(["Link"])
        elif not operation.responses:
            found["204"] = self._answer(204, {})
        if "200" in found:
            found["200"]["headers"] |= error_responses.headers(operation.headers)
        return dict(sorted(found.items()))

    def _answer(self, status: int, content: Json, links: tuple[Link, ...] = ()) -> Json:
        names = ["X-Request-Id"]
        if self.is_merchant_api:
            names += ["Ignored-Parameters", *LIMIT_HEADERS]
        if self.is_once:
            names.append("Idempotent-Replayed")
        response: Json = {"description": HTTPStatus(status).phrase, "headers": error_responses.headers(names)}
        if content:
            response["content"] = content
        if links:
            response["links"] = {link.operation: self._link(link) for link in links}
        return response

    def _link(self, link: Link) -> Json:
        operation: Json = {"operationId": link.operation}
        if link.parameter:
            operation["parameters"] = {link.parameter: f"$response.body#/{link.parameter}"}
        return operation if link.body is None else operation | {"requestBody": dict(link.body)}

    def _map_serializer_field(self, field: Any, direction: Any, bypass_extensions: bool = False) -> Any:
        schema = super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]
        if isinstance(schema, dict):
            schema.pop("x-spec-enum-id", None)  # for a hook that names enums, which we do not use
        return schema


class ApiSchemaGenerator(SchemaGenerator):
    """Adds plain views (images, health, documents) and the webhooks."""

    def parse(self, input_request: Any, public: bool) -> Json:
        paths: Json = super().parse(input_request, public)  # type: ignore[no-untyped-call]
        for pattern in get_resolver().url_patterns:
            if isinstance(pattern, URLPattern) and operation_of(pattern.callback) is not None:
                path = "/" + re.sub(r"<\w+:(\w+)>", r"{\1}", str(pattern.pattern))
                view: Any = SimpleNamespace(
                    action="handler", handler=pattern.callback, request=None, format_kwarg=None
                )
                schema = OperationSchema()
                schema.view = view
                paths[path] = {"get": schema.get_operation(path, "", "", "GET", self.registry)}
        self.has_both_forms = {path for path in paths if f"{COUNTRY}{path}" in paths}
        paths = dict(_described_once(paths))
        self.messages = webhook_messages.describe(self.registry)
        return paths

    def get_schema(self, request: Any = None, public: bool = False) -> Json:
        schema: Json = super().get_schema(request, public)  # type: ignore[no-untyped-call]
        shared = PARTS["components"]["parameters"] | _shared_parameters(schema["paths"])
        schema["components"] |= PARTS["components"] | {"parameters": shared}
        tags = [{"name": tag.value, "description": tag.description} for tag in Tag]
        # Paths that have no form with the country work below the first server only.
        paths = {
            path: item if path in self.has_both_forms else {"servers": SERVERS[:1], **item}
            for path, item in schema["paths"].items()
        }
        return schema | {"servers": SERVERS, "paths": paths, "tags": tags, "webhooks": self.messages}


class AdvanceRequestBody(OpenApiSerializerExtension):
    """Exactly one of the two fields: generators make a union of two types of it."""

    target_class = "testclock.serializers.AdvanceRequest"

    def map_serializer(self, auto_schema: Any, direction: Any) -> Json:
        fields = auto_schema._map_basic_serializer(self.target, direction)["properties"]
        return {
            "description": "Exactly one of the two fields.",
            "oneOf": [
                {"type": "object", "required": [name], "properties": {name: schema}}
                for name, schema in fields.items()
            ],
        }


def _shared_parameters(paths: Json) -> Json:
    """Put references in place of parameters that several operations have, and return these by name."""
    lists = [each["parameters"] for item in paths.values() for each in item.values()]
    times = Counter(json.dumps(parameter) for parameters in lists for parameter in parameters)
    shared: Json = {}
    for parameters in lists:
        for position, parameter in enumerate(parameters):
            if "$ref" in parameter or times[json.dumps(parameter)] < SHARED_BY:
                continue
            name = parameter["name"].title().replace("_", "")
            if shared.setdefault(name, parameter) == parameter:
                parameters[position] = {"$ref": f"#/components/parameters/{name}"}
    return shared


def _allow_null(schema: Json) -> None:
    """Let the optional fields of a body be null, which means omitted. Operations may share the schema."""
    for name in schema.get("properties", {}).keys() - set(schema.get("required", ())):
        field = schema["properties"][name]
        if isinstance(field.get("type"), str):
            field["type"] = [field["type"], "null"]
            field |= {"enum": [*field["enum"], None]} if "enum" in field else {}
        elif "allOf" in field:
            field["oneOf"] = [*field.pop("allOf"), {"type": "null"}]


def _described_once(paths: Json) -> Iterator[tuple[str, Json]]:
    """Each path without the country where there is one, with its methods in order."""
    for path, methods in paths.items():
        if path.startswith(f"{COUNTRY}/") and path.removeprefix(COUNTRY) in paths:
            continue
        described = {method: methods[method] for method in METHODS if method in methods}
        if path.startswith(f"{COUNTRY}/"):
            described = {method: _without_version(operation) for method, operation in described.items()}
        yield path, described


def _without_version(operation: Json) -> Json:
    """An operation that the interface also has without a version in its path."""
    name = f"{operation['operationId']}_without_version"
    description = f"The same as `{operation['operationId']}`. {operation['description']}"
    return operation | {"operationId": name, "description": description}


def _media_types(contents: Mapping[str, Any]) -> Json:
    return {media_type: {"schema": schema} for media_type, schema in contents.items()}


def _merge_contents(own: Json, errors: Json) -> Json:
    """Merge the bodies of one status. If both have a media type, allow both schemas for it."""
    both = own | errors
    for media_type in own.keys() & errors.keys():
        schemas = [own[media_type]["schema"], errors[media_type]["schema"]]
        both[media_type] = errors[media_type] | {"schema": {"oneOf": schemas}}
    return both
