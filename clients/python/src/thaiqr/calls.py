"""Descriptions of requests, and how resources turn them into methods of both clients.

A method of a resource returns a description: a `Call`, or a `Listing` of pages. `operation` and `listing`
turn it into a method that sends it. On `ThaiQR` it returns the result, on `AsyncThaiQR` it is awaited. So
each operation is written once.
"""

import functools
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, cast, overload
from urllib.parse import quote

from thaiqr.paging import AsyncPages, Listing, Pages

P = ParamSpec("P")
T = TypeVar("T")
NULL = object()
"""A field that is sent as null: fields that are None are left out."""
Instant = datetime | date | str
"""A time with its offset, or a date. As text it is sent unchanged."""


class Blocking:
    """Marks resources of `ThaiQR`, whose methods return results."""


class Awaiting:
    """Marks resources of `AsyncThaiQR`, whose methods are awaited."""


Mode = TypeVar("Mode", bound=Blocking | Awaiting)


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request, and how its answer is read. A POST has an idempotency key, the same over all retries.

    is_file: the answer is a file, and `read` gets its bytes. picture: sent with the body as a form.
    is_done: sent again for `seconds` until it says so. It is told whether they are over, and may raise.
    """

    method: str
    path: str
    read: Callable[[Any], T]
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    idempotency_key: str | None = None
    is_file: bool = False
    picture: bytes | None = None
    is_done: Callable[[T, bool], bool] | None = None
    seconds: float = 0.0


def get(path: str, read: Callable[[Any], T], **query: Any) -> Call[T]:
    """Describe a GET. Parameters that are None are left out."""
    return Call("GET", path, read, query=encode_query(query))


def get_file(path: str, **query: Any) -> Call[bytes]:
    """Describe a GET of a file."""
    return Call("GET", path, bytes, query=encode_query(query), is_file=True)


def post(path: str, read: Callable[[Any], T], key: str | None, **body: Any) -> Call[T]:
    """Describe a POST. Fields that are None are left out. Without a key a new one is made."""
    if key and not key.isprintable():
        raise ValueError("the idempotency key has characters that no header can have")
    return Call("POST", path, read, body=_encode_body(body), idempotency_key=key or f"thaiqr-{uuid.uuid4()}")


def patch(path: str, read: Callable[[Any], T], **body: Any) -> Call[T]:
    """Describe a PATCH. Fields that are None stay as they are."""
    return Call("PATCH", path, read, body=_encode_body(body))


def delete(path: str) -> Call[None]:
    """Describe a DELETE."""
    return Call("DELETE", path, lambda _: None)


def path(template: str, **ids: str) -> str:
    """Fill ids into a path. Raises ValueError for an id that would name another path, or is no text."""
    for name, value in ids.items():
        if not isinstance(value, str) or value in {"", ".", ".."}:
            raise ValueError(f"{name} must be an id, not {value!r}")
    return template.format(**{name: quote(value, safe="") for name, value in ids.items()})


def encode_query(values: Mapping[str, Any]) -> dict[str, str]:
    """Parameters as text: times as ISO 8601, a mapping `metadata` as `metadata[key]`."""
    encoded: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            encoded |= {f"{name}[{key}]": str(item) for key, item in value.items()}
        elif value is not None:
            encoded[name] = str(_plain(value))
    return encoded


def list_query(page_size: int, **filters: Any) -> dict[str, str]:
    """The parameters of a list: filters, and the number of rows of a page."""
    return encode_query({"limit": page_size, **filters})


def _encode_body(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    """A time as ISO 8601. Raises ValueError for a time without an offset: nobody knows which one is meant."""
    if isinstance(value, datetime) and value.tzinfo is None:
        raise ValueError("a time needs its offset: use datetime.now(UTC) or ZoneInfo('Asia/Bangkok')")
    if value is NULL:
        return None
    return value.isoformat() if isinstance(value, date) else value


class Client(Protocol):
    """What resources need of a client. The two clients return different things from these."""

    def send(self, call: Call[Any], /) -> Any: ...

    def pages(self, listing: Listing[Any], /) -> Any: ...


class Resource(Generic[Mode]):
    """A group of operations, such as `client.payments`."""

    def __init__(self, client: Client) -> None:
        self._client = client


class operation(Generic[P, T]):
    """Turns a method that returns a Call into one that sends it."""

    def __init__(self, build: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self.build = build
        functools.update_wrapper(cast(Any, self), build)

    @overload
    def __get__(self, resource: None, owner: type) -> Self: ...
    @overload
    def __get__(self, resource: Resource[Blocking], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, resource: Resource[Awaiting], owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: type) -> Any:
        if resource is None:
            return self
        return _bound(self.build, resource, resource._client.send)


class listing(Generic[P, T]):
    """Turns a method that returns a Listing into one that returns its pages."""

    def __init__(self, build: Callable[Concatenate[Any, P], Listing[T]]) -> None:
        self.build = build
        functools.update_wrapper(cast(Any, self), build)

    @overload
    def __get__(self, resource: None, owner: type) -> Self: ...
    @overload
    def __get__(self, resource: Resource[Blocking], owner: type) -> Callable[P, Pages[T]]: ...
    @overload
    def __get__(self, resource: Resource[Awaiting], owner: type) -> Callable[P, AsyncPages[T]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: type) -> Any:
        if resource is None:
            return self
        return _bound(self.build, resource, resource._client.pages)


def _bound(
    build: Callable[..., Any], resource: Resource[Any], send: Callable[[Any], Any]
) -> Callable[..., Any]:
    @functools.wraps(build)
    def method(*arguments: Any, **named: Any) -> Any:
        return send(build(resource, *arguments, **named))

    return method
