"""OpenAPI descriptions of health, metrics and documents."""

from functools import partial

from apidocs.components import PARTS
from core.http import JSON
from core.openapi import Operation, Tag
from merchants.errors import AuthenticationFailed

YAML = "application/yaml"
_service = partial(Operation, tag=Tag.SERVICE)
_GUARDED = "Needs `Authorization: Bearer <MONITORING_TOKEN>` if the operator has set such a token."
_READINESS = {JSON: PARTS["readiness"]}

healthz = _service(
    name="healthz",
    summary="Check that this process answers",
    description="Checks nothing else.",
    responses={
        200: {
            JSON: {
                "type": "object",
                "required": ["status"],
                "properties": {"status": {"type": "string", "const": "ok"}},
            }
        }
    },
)
readyz = _service(
    name="readyz",
    summary="Check that the service works",
    description="503 names the check that failed: database, sessions, migrations, workers, beat, deliveries. "
    f"`warnings` names what does not stop the service: clocks that differ. {_GUARDED}",
    errors=(AuthenticationFailed,),
    responses={200: _READINESS, 503: _READINESS},
)
metrics = _service(
    name="metrics",
    summary="How well does it do its work?",
    description=f"Prometheus text. {_GUARDED}",
    errors=(AuthenticationFailed,),
    responses={200: {"text/plain": {"type": "string"}}},
)
openapi = _service(
    name="openapi",
    summary="This document",
    description="OpenAPI 3.1.",
    responses={200: {JSON: {"type": "object"}}},
)
openapi_yaml = _service(
    name="openapi_yaml",
    summary="This document as YAML",
    description="OpenAPI 3.1.",
    responses={200: {YAML: {"type": "object"}}},
)
postman = _service(
    name="postman",
    summary="This document as a Postman collection",
    description="Version 2.1, with one request for each operation. Set the variables `base_url` and "
    "`secret_key`. The ids in answers become variables for the next request.",
    responses={200: {JSON: {"type": "object"}}},
)
llms = _service(
    name="llms",
    summary="This document for language models",
    description="The rules, a first purchase, and one line for each operation, as Markdown (llmstxt.org).",
    responses={200: {"text/plain": {"type": "string"}}},
)
page = _service(
    name="docs",
    summary="This document, to read",
    description="With guides. Needs nothing from the internet. `/docs/try` sends requests.",
    responses={200: {"text/html": {"type": "string"}}},
)
