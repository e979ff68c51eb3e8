"""OpenAPI descriptions of health, metrics and documents."""

from apidocs.components import PARTS
from core.errors import ApiError
from core.openapi import Operation, Tag
from merchants.errors import AuthenticationFailed

YAML = "application/yaml"


def _service(name: str, *errors: type[ApiError]) -> Operation:
    return Operation(name=name, tag=Tag.SERVICE, errors=errors, **PARTS["service"][name])


healthz = _service("healthz")
readyz = _service("readyz", AuthenticationFailed)
metrics = _service("metrics", AuthenticationFailed)
openapi = _service("openapi")
openapi_yaml = _service("openapi_yaml")
postman = _service("postman")
llms = _service("llms")
page = _service("docs")
