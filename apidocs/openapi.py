"""OpenAPI descriptions of health, metrics and documents."""

from functools import partial

from core.http.openapi import Tag, described

YAML = "application/yaml"
_service = partial(described, __file__, tag=Tag.SERVICE)

healthz = _service("healthz")
readyz = _service("readyz")
metrics = _service("metrics")
openapi = _service("openapi")
openapi_yaml = _service("openapi_yaml")
postman = _service("postman")
llms = _service("llms")
page = _service("docs")
