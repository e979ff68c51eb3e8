"""From the JSON of an answer to frozen dataclasses. Unknown fields stay in `raw`."""

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from datetime import datetime
from typing import Any, TypeVar, Union, get_args, get_origin

from thaiqr.errors import UnexpectedResponseError

M = TypeVar("M", bound="Model")
Metadata = Mapping[str, Any]
Plan = list[tuple[str, Callable[[Any], Any], bool]]

_plans: dict[type["Model"], Plan] = {}


@dataclass(frozen=True, kw_only=True)
class Model:
    """An object of the API. `raw` is its JSON, also with fields that this version does not know."""

    raw: Mapping[str, Any] = field(repr=False, compare=False)


def decode(model: type[M], data: Any) -> M:
    """Read an object. Raises UnexpectedResponseError if it is none, or a required field is missing."""
    if not isinstance(data, dict):
        raise UnexpectedResponseError(f"A {model.__name__} was expected; the answer is no object.")
    values: dict[str, Any] = {}
    for name, read, is_required in _plan(model):
        if name in data:
            values[name] = _read(model, name, read, data[name])
        elif is_required:
            raise UnexpectedResponseError(f"The answer is no {model.__name__}: it has no {name}.")
    return model(raw=data, **values)


def _read(model: type[Model], name: str, read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except (ValueError, TypeError):
        raise UnexpectedResponseError(f"The answer is no {model.__name__}: {name} is malformed.") from None


def reader(model: type[M]) -> Callable[[Any], M]:
    """A function that reads objects of the model."""
    return lambda data: decode(model, data)


def _plan(model: type[Model]) -> Plan:
    """The fields of a model: name, how it is read, and whether it is required."""
    if model not in _plans:
        named = (each for each in fields(model) if each.name != "raw")
        _plans[model] = [(each.name, _converter(each.type), _is_required(each)) for each in named]
    return _plans[model]


def _is_required(described: Field[Any]) -> bool:
    return described.default is MISSING and described.default_factory is MISSING


def _converter(kind: Any) -> Callable[[Any], Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        inner = _converter(next(each for each in arguments if each is not type(None)))
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        item = _converter(arguments[0])
        return lambda values: tuple(item(value) for value in values)
    if kind is datetime:
        return datetime.fromisoformat
    if isinstance(kind, type) and issubclass(kind, Model):
        return reader(kind)
    return lambda value: value
