"""Schemas of the objects that the API returns, from their declarations (`core.http.objects`)."""

import inspect
from typing import Any, get_args, get_origin, is_typeddict

from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent as Component

from core.http import objects
from core.http.objects import Declared, ObjectType

Json = dict[str, Any]
TYPES = {str: "string", int: "integer", bool: "boolean"}


def reference(shape: ObjectType, registry: ComponentRegistry) -> Json:
    """A reference to the schema of an object, which is a component under the name of its class."""
    component = Component(name=shape.__name__, type=Component.SCHEMA, object=shape)
    if component not in registry:
        component.schema = _object(shape, registry)
        registry.register(component)
    found: Json = component.ref
    return found


def _object(shape: ObjectType, registry: ComponentRegistry) -> Json:
    about = {"description": inspect.cleandoc(shape.__doc__)} if shape.__doc__ else {}
    fields = objects.fields_of(shape)
    return {
        "type": "object",
        **about,
        "properties": {name: _field(field, registry) for name, field in fields.items()},
        "required": sorted(shape.__required_keys__),
    }


def _field(field: Declared, registry: ComponentRegistry) -> Json:
    described = {"description": field.description} if field.description else {}
    schema = _plain(field.type, registry) | field.schema
    if not field.is_nullable:
        return schema | described
    if "$ref" in schema:
        return {"oneOf": [schema, {"type": "null"}]} | described
    with_null = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return schema | with_null | {"type": [schema["type"], "null"]} | described


def _plain(kind: Any, registry: ComponentRegistry) -> Json:
    if is_typeddict(kind):
        return reference(kind, registry)
    if get_origin(kind) is list:
        (items,) = get_args(kind)
        return {"type": "array", "items": _field(objects.read(items), registry)}
    if get_origin(kind) is dict:
        return {"type": "object", "additionalProperties": {}}
    return {"type": TYPES[kind]}
