"""Descriptions of API operations, declared beside their views. `apidocs.generator` makes OpenAPI of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Self, TypedDict, TypeVar, get_type_hints

import yaml
from rest_framework import serializers

from core.http.objects import ObjectType
from core.http.paging import CursorPage, Page
from core.http.scopes import Scope

Handler = TypeVar("Handler", bound=Callable[..., Any])
SerializerType = type[serializers.Serializer[Any]]


class Tag(StrEnum):
    """Groups of operations with their descriptions, in the order in which a merchant meets them."""

    description: str

    def __new__(cls, value: str, description: str) -> Self:
        tag = str.__new__(cls, value)
        tag._value_, tag.description = value, description
        return tag

    QR_CODES = "QR codes", "Create QR codes that every Thai banking app can scan."
    PAYMENT_LINKS = "Payment links", "Pages on which customers pay, without a page of yours."
    PAYMENTS = "Payments", "Read payments, and charge cards. Poll here, or register a webhook."
    REFUNDS = "Refunds", "Send all or a part of a payment back."
    WEBHOOKS = "Webhooks", "Receive a signed message for each change."
    TRANSACTIONS = "Transactions", "The history of payments, failed attempts and refunds."
    WITHDRAWALS = "Withdrawals", "Send money from the balance to an account at any bank in Thailand."
    SANDBOX = "Sandbox bank", "Simulate payments with test keys."
    BANKS = "Banks", "Endpoints that banks call. Not for merchants."
    SERVICE = "Service", "Health, metrics and documents."


class Signature(StrEnum):
    """The security schemes of callers that sign their requests."""

    REQUEST_TO_SANDBOX_BANK = "requestToSandboxBank"
    NOTIFICATION_OF_SANDBOX_BANK = "notificationOfSandboxBank"


@dataclass(frozen=True, slots=True)
class Body:
    serializer: SerializerType
    example: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """The body of a 200."""

    shape: ObjectType
    example: Mapping[str, Any]


PAGES: dict[tuple[str, ...], Any] = {}
"""Lists with the same fields are one shape."""


def page_of(
    rows: str,
    row: ObjectType,
    example: Mapping[str, Any],
    *,
    words: str = "",
    base: ObjectType = CursorPage,
    **more: Any,
) -> Answer:
    """A page of a list: its rows under the name `rows`, the fields of `base`, and `more` fields.

    words: what the rows are, if their name does not say it.
    """
    make: Any = TypedDict
    hints = get_type_hints(base, include_extras=True) | {rows: list[row]} | more  # type: ignore[valid-type]
    name = f"{row.__name__.removesuffix('Object')}List"
    shape = PAGES.setdefault((name, *hints), make(name, hints))
    shape.__doc__ = f"A page of {words or rows}."
    return Answer(shape, {rows: [example], "total": 1, "limit": 20, "offset": 0})


@dataclass(frozen=True, slots=True)
class Link:
    """An operation that can follow.

    parameter: a parameter of the path; its value is the field of this name in the response.
    body: the next body; its values are runtime expressions on this response.
    """

    operation: str
    parameter: str = ""
    body: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Operation:
    """One row of the URL table. Used as a decorator it changes nothing about the view.

    name: the operationId; other path forms get a suffix.
    response: the body of the 200; None means 204.
    errors: the codes of its own; common errors and `invalid_<field>` are added.
    request_contents, responses: bodies without a serializer, by (status and) media type.
    headers: headers that the 200 can have, beside those of every response.
    scope: what a merchant's key needs; every operation of the merchant API has one.
    signature: what callers without a key must sign with.
    """

    name: str
    tag: Tag
    summary: str
    description: str
    scope: Scope | None = None
    signature: Signature | None = None
    response: Answer | None = None
    body: Body | None = None
    query: SerializerType | None = None
    request_contents: Mapping[str, Any] = field(default_factory=dict)
    errors: Sequence[str] = ()
    links: tuple[Link, ...] = ()
    responses: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    headers: tuple[str, ...] = ()

    @cached_property
    def body_reader(self) -> serializers.Serializer[Any]:
        """Shared between requests and threads: validation keeps no state on it."""
        return self.body.serializer() if self.body else serializers.Serializer()

    @cached_property
    def query_reader(self) -> serializers.Serializer[Any]:
        """Shared in the same way."""
        return self.query() if self.query else serializers.Serializer()

    @property
    def is_list(self) -> bool:
        """Whether the response is a page of a list, which is also available as CSV."""
        needed = Page.__required_keys__
        return self.response is not None and needed <= self.response.shape.__annotations__.keys()

    def __call__(self, handler: Handler) -> Handler:
        handler.operation = self  # type: ignore[attr-defined]
        return handler


def described(
    module: str,
    name: str,
    *,
    body: SerializerType | None = None,
    response: ObjectType | None = None,
    rows: str = "",
    page: Mapping[str, Any] | None = None,
    **more: Any,
) -> Operation:
    """An operation whose words, errors, links and examples are in the YAML file beside `module`.

    rows: their name, if the response is a page of a list. page: more for `page_of`.
    """
    words = dict(words_of(module)[name])
    if body is not None:
        words["body"] = Body(body, words["body"])
    if response is not None:
        example = words["response"]
        made = page_of(rows, response, example, **page or {}) if rows else Answer(response, example)
        words["response"] = made
    links = tuple(
        Link(other, **{"body" if isinstance(value, dict) else "parameter": value})
        for other, value in words.pop("links", {}).items()
    )
    return Operation(name=name, links=links, **words, **more)


@cache
def words_of(module: str) -> Any:
    """The YAML file beside a module: what is said about each operation, by its name."""
    return yaml.load(Path(module).with_suffix(".yaml").read_bytes(), yaml.CSafeLoader)


def operation_of(handler: object) -> Operation | None:
    found: Operation | None = getattr(handler, "operation", None)
    return found
