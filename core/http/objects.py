"""How the objects of the API are declared: once, as a TypedDict in the `shapes` of an app.

`Annotated` gives a field its part of a JSON schema and its description, for the OpenAPI document and CSV
files. The function that makes the object returns the TypedDict, so mypy holds both equal. Lists, whose fields
`core.http.paging` makes, are declared beside their operations.
"""

from collections.abc import Iterable
from types import UnionType
from typing import Annotated, Any, NamedTuple, NotRequired, Union, get_args, get_origin, get_type_hints

from core import ids, money

MAX_SATANG = 10**12
"""Satang: more than any bank moves at once."""
INT32 = 2**31 - 1
ObjectType = type[Any]
"""A TypedDict."""


class Schema(dict[str, Any]):
    """A part of a JSON schema. It has a hash, because Python keeps one of equal hints, as in `X | None`.

    So an amount must not be equal to another number within the same bounds.
    """

    def __hash__(self) -> int:  # type: ignore[override]
        return hash((type(self), frozenset(self)))

    def __eq__(self, other: object) -> bool:
        return type(other) in (dict, type(self)) and super().__eq__(other)


class SatangSchema(Schema):
    """Of an amount, which CSV files also show in baht."""


def between(low: int, high: int | None = None) -> Schema:
    """A number within these bounds."""
    if high is None:
        return Schema(minimum=low)
    size = Schema(format="int64") if max(-low, high) > INT32 else Schema()
    return Schema(size, maximum=high, minimum=low)


def satang(low: int, high: int = MAX_SATANG) -> SatangSchema:
    return SatangSchema(between(low, high))


def up_to(length: int) -> Schema:
    """A text of so many characters at most."""
    return Schema(maxLength=length)


def one_of(values: Iterable[str]) -> Schema:
    return Schema(enum=[str(value) for value in values])


def id_schema(prefix: str) -> Schema:
    return Schema(type="string", pattern=f"^{prefix}[0-9A-Za-z]{{{ids.BODY_LENGTH}}}$")


INSTANT = Schema(format="date-time", pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$")
URI = Schema(format="uri")
# CSV files leave it out, because they have a column of baht.
AMOUNT_DISPLAY = Schema(pattern=rf"^-?\d{{1,3}}(,\d{{3}})*\.\d{{2}} {money.CURRENCY}$")

PaymentId = Annotated[str, id_schema("pay_")]
PaymentLinkId = Annotated[str, id_schema("pl_")]
SettlementId = Annotated[str, id_schema("stl_")]
SlipId = Annotated[str, id_schema("slp_")]
QrCodeId = Annotated[str, id_schema("qr_")]
RefundId = Annotated[str, id_schema("ref_")]
WithdrawalId = Annotated[str, id_schema("wd_")]
TransactionId = Annotated[str, id_schema("txn_")]
ExceptionId = Annotated[str, id_schema("btx_")]
WebhookId = Annotated[str, id_schema("wh_")]
DestinationId = Annotated[str, id_schema("dst_")]
EventId = Annotated[str, id_schema("evt_")]
DeliveryId = Annotated[str, id_schema("dlv_")]
Instant = Annotated[str, INSTANT]
"""UTC, to the millisecond."""
Amount = Annotated[int, satang(money.MIN_AMOUNT, money.MAX_AMOUNT), "Satang."]
AmountDisplay = Annotated[str, AMOUNT_DISPLAY, "The amount in baht, for people: 1,500.00 THB."]
Currency = Annotated[str, one_of([money.CURRENCY])]
Metadata = Annotated[dict[str, Any], "The metadata of the request, unchanged."]


class Declared(NamedTuple):
    """What the hint of a field says. parts: the inner ones first."""

    type: Any
    is_nullable: bool
    parts: tuple[Any, ...]

    @property
    def description(self) -> str:
        return next((part for part in reversed(self.parts) if isinstance(part, str)), "")

    @property
    def schema(self) -> Schema:
        """The parts of the schema together. An outer one counts."""
        found = Schema()
        for part in self.parts:
            if isinstance(part, dict):
                found.update(part)
        return found


def fields_of(shape: ObjectType) -> dict[str, Declared]:
    return {name: read(hint) for name, hint in get_type_hints(shape, include_extras=True).items()}


def read(hint: Any) -> Declared:
    is_nullable, parts = False, list[Any]()
    while (origin := get_origin(hint)) in (Annotated, NotRequired, Union, UnionType):
        if origin is Annotated:
            hint, *more = get_args(hint)
            parts = more + parts
        elif origin is NotRequired:
            (hint,) = get_args(hint)
        else:
            (hint,) = (each for each in get_args(hint) if each is not type(None))
            is_nullable = True
    return Declared(hint, is_nullable, tuple(parts))
