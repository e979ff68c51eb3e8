"""What an operation of the API does, said once beside its view. `apidocs.generator` writes it as OpenAPI."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from rest_framework import serializers

from core.errors import ApiError
from core.scopes import Scope

Handler = TypeVar("Handler", bound=Callable[..., Any])
SerializerType = type[serializers.Serializer[Any]]


class Tag(StrEnum):
    """Groups of operations, in the order in which a merchant meets them."""

    QR_CODES = "QR codes"
    PAYMENTS = "Payments"
    REFUNDS = "Refunds"
    WEBHOOKS = "Webhooks"
    TRANSACTIONS = "Transactions"
    WITHDRAWALS = "Withdrawals"
    SANDBOX = "Sandbox bank"
    BANKS = "Banks"
    SERVICE = "Service"


TAGS = {
    Tag.QR_CODES: "Ask for money: a code that every Thai banking app can scan.",
    Tag.PAYMENTS: "Has it been paid? Poll here, or be told by a webhook.",
    Tag.REFUNDS: "Send money back, all of it or a part.",
    Tag.WEBHOOKS: "Be told of every change by a signed message.",
    Tag.TRANSACTIONS: "The history of what was paid, what failed and what went back.",
    Tag.WITHDRAWALS: "Take money out, to an account at any bank in Thailand.",
    Tag.SANDBOX: "Pay with test keys, well or badly.",
    Tag.BANKS: "Where the service and banks speak to each other. Not for merchants.",
    Tag.SERVICE: "Is it up, how is it doing, what can it do?",
}


@dataclass(frozen=True, slots=True)
class Body:
    """An object that is sent, and one of its kind."""

    serializer: SerializerType
    example: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Link:
    """An operation that can follow: its parameters and body by runtime expression on this answer.

    It is linked in the same path form, unless it has only one.
    """

    operation: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, str] | None = None
    has_one_path: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the URL table. Used as a decorator it changes nothing about the view.

    name: the operationId; other path forms get a suffix. answer: of the 200; none means 204.
    plain_answer: where the form without the country differs. refusals: those of this operation alone;
    what every operation of its kind can answer, and `invalid_<field>`, is added. accepts, contents: bodies
    that no serializer describes, by media type; those of answers by status first. scope: what the key of a
    merchant needs; every operation of the merchant API has one.
    """

    name: str
    tag: Tag
    summary: str
    description: str
    scope: Scope | None = None
    response: Body | None = None
    response_without_country: Body | None = None
    body: Body | None = None
    query: SerializerType | None = None
    request_contents: Mapping[str, Any] = field(default_factory=dict)
    errors: tuple[type[ApiError], ...] = ()
    links: tuple[Link, ...] = ()
    responses: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    def __call__(self, handler: Handler) -> Handler:
        handler.operation = self  # type: ignore[attr-defined]
        return handler


def operation_of(handler: object) -> Operation | None:
    found: Operation | None = getattr(handler, "operation", None)
    return found
