"""The short way of a request body accepts what DRF's accepts, with the same result."""

from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rest_framework import serializers
from rest_framework.fields import empty

from core import fields, money
from qrcodes.serializers import QR_CODE_REQUEST

TEXTS = (
    st.text(max_size=3)
    | st.text("ก-o \x00\u202e\ud800\n\t", max_size=4)
    | st.integers(0, 141).map("x".__mul__)
    | st.sampled_from(["THB", "thb", "", " ", "order-1042", "ส้มตำ"])
)
NUMBERS = st.integers() | st.sampled_from([99, 100, money.MAX_AMOUNT, money.MAX_AMOUNT + 1, 0, 1, 1440, 1441])
OTHERS: st.SearchStrategy[Any] = (
    st.booleans() | st.none() | st.floats(allow_nan=False) | st.just({}) | st.just([])
)
VALUES = TEXTS | NUMBERS | OTHERS
NAMES = [*QR_CODE_REQUEST.fields, "unknown"]
RIGHT = {
    "amount": st.integers(money.MIN_AMOUNT, money.MAX_AMOUNT) | VALUES,
    "currency": st.just("THB") | VALUES,
}
OPTIONAL = {name: VALUES for name in NAMES if name not in RIGHT}
BODIES = st.fixed_dictionaries(RIGHT, optional=OPTIONAL) | st.dictionaries(st.sampled_from(NAMES), VALUES)


def result_of(validate: Any, body: Any) -> Any:
    try:
        return list(validate(body).items())
    except serializers.ValidationError as error:
        return error.detail


@given(BODIES | VALUES)
def test_short_way_agrees_with_drf(body: Any) -> None:
    assert result_of(QR_CODE_REQUEST.run_validation, body) == result_of(PLAIN.run_validation, body)


def plain() -> Any:
    """The same serializer with DRF's own steps, which see names as they are stored."""
    serializer: Any = type(QR_CODE_REQUEST)()
    for each in (serializer, *serializer.fields.values()):
        if "run_validation" in vars(type(each)) or isinstance(each, fields.Body):
            base: Any = serializers.Serializer if each is serializer else type(each).__base__
            run = base.run_validation.__get__(each)
            each.run_validation = partial(run_cleaned, run, each) if isinstance(each, fields.Text) else run
    return serializer


def run_cleaned(run: Callable[[Any], Any], text: fields.Text, data: Any = empty) -> Any:
    return run(text.cleaned(data))


PLAIN = plain()


def test_body_with_nothing_wrong_takes_the_short_way() -> None:
    body = {"amount": 100, "currency": "THB", "reference": "order-1", "unknown": 1}
    accepted = {"amount": 100, "currency": "THB", "reference": "order-1", "expiry_minutes": 15}
    assert QR_CODE_REQUEST._accept(body) == accepted


def test_bodies_have_no_rules_that_the_short_way_skips() -> None:
    for each in fields.Body.__subclasses__():
        hooks = [name for name in vars(each) if name.startswith("validate")]
        assert (hooks, each().validators) == ([], [])
        for name, field in each().fields.items():
            has_default = field.default is not empty
            assert (field.source, field.allow_null, has_default and callable(field.default)) == (
                name,
                False,
                False,
            )
