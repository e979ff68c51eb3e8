"""Declarations of the objects of the API."""

from typing import Annotated, TypedDict

from core.http import objects
from core.http.objects import SatangSchema, between, satang


class Amounts(TypedDict):
    count: Annotated[int, between(0, objects.MAX_SATANG)] | None
    amount: Annotated[int, satang(0)] | None


def test_amount_is_not_taken_for_a_number_within_the_same_bounds() -> None:
    """Python keeps one of equal hints, and CSV files show amounts in baht as well."""
    count, amount = objects.fields_of(Amounts).values()
    assert count.schema == amount.schema
    assert not isinstance(count.parts[0], SatangSchema)
    assert isinstance(amount.parts[0], SatangSchema)
