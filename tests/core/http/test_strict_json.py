"""Strict parsing of JSON bodies: valid ones pass, others raise only the documented error."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from core.http import strict_json
from core.http.strict_json import JsonRefused
from tests.examples import examples


def nested(depth: int) -> bytes:
    """An object with arrays in it, `depth` levels in all."""
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"{}", {}),
        (b' \t\r\n{"a": 1}\n', {"a": 1}),
        (b'{"a":9223372036854775807,"b":-9223372036854775808}', {"a": 2**63 - 1, "b": -(2**63)}),
        (b'{"a":1.5,"b":1e2,"c":-0.0,"d":1e-400}', {"a": 1.5, "b": 100.0, "c": -0.0, "d": 0.0}),
        (b'{"a":[true,false,null,""]}', {"a": [True, False, None, ""]}),
        ('{"ชื่อ":"กำลังทดสอบ 😀"}'.encode(), {"ชื่อ": "กำลังทดสอบ 😀"}),
        (b'{"a":"\\ud83d\\ude00"}', {"a": "😀"}),
        (b'{"a":{"k":1},"b":{"k":1}}', {"a": {"k": 1}, "b": {"k": 1}}),
        (b'{"a":"' + b"[" * 100 + b'"}', {"a": "[" * 100}),
        (b'{"a":"\\"' + b"[" * 100 + b'\\\\"}', {"a": '"' + "[" * 100 + "\\"}),
        (b'{"a":[' + b",".join([b"[]"] * 100) + b"]}", {"a": [[]] * 100}),
    ],
)
def test_standard_json_is_parsed(raw: bytes, value: dict[str, Any]) -> None:
    assert strict_json.loads(raw) == value


def test_ambiguous_json_is_refused() -> None:
    for raw, reason in [
        (b"", "not JSON at"),
        (b"{", "not JSON at"),
        (b'{"a":1,}', "not JSON at"),
        (b"{'a':1}", "not JSON at"),
        (b'{"a":1} {}', "not JSON at"),
        (b'\xef\xbb\xbf{"a":1}', "not JSON at"),
        (b'{"a":"\x01"}', "not JSON at"),
        (b'{"a":01}', "not JSON at"),
        (b'{"a":"\xc3("}', "not UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "not UTF-8"),
        ('{"a":1}'.encode("utf-16"), "not UTF-8"),
        ('{"a":1}'.encode("utf-16-le"), "not JSON at"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"1", "not a JSON object"),
        (b'{"a":1,"a":1}', "same key twice"),
        (b'{"m":[{"a":1,"\\u0061":2}]}', "same key twice"),
        (b'{"a":NaN}', "NaN is not JSON"),
        (b'{"a":-Infinity}', "-Infinity is not JSON"),
        (b'{"a":1e400}', "beyond 64 bit"),
        (b'{"a":-1e400}', "beyond 64 bit"),
        (b'{"a":9223372036854775808}', "beyond 64 bit"),
        (b'{"a":-9223372036854775809}', "beyond 64 bit"),
        (b'{"a":' + b"9" * 60_000 + b"}", "beyond 64 bit"),
        (b'{"a":"\\u0000"}', "U+0000"),
        (b'{"a\\u0000":1}', "U+0000"),
        (b'{"a":[{"b":"\\ud800"}]}', "surrogate"),
        (b'{"\\udfff":1}', "surrogate"),
        (b'{"a":"\\udc00\\ud800"}', "surrogate"),
        (nested(33), "deeper than 32"),
        (nested(30_000), "deeper than 32"),
        (b"[" * 60_000, "deeper than 32"),
    ]:
        with pytest.raises(JsonRefused) as refused:
            strict_json.loads(raw)
        assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("text", "is_integer"),
    [
        *(("9223372036854775808", True), ("-9223372036854775809", True), ("9" * 60_000, True)),
        *(("1e400", True), ("-1e400", True), ("1e999999999999999999999", True)),
        *(("99.999999999999999999", False), ("9007199254740993.0", True), ("1e-400", False)),
        *(("1e-999999999999999999999", False), ("0." + "0" * 60_000 + "1", False)),
    ],
    ids=lambda value: str(value)[:30],
)
def test_number_that_does_not_fit_is_kept_as_text_in_a_body(text: str, is_integer: bool) -> None:
    started = time.process_time()
    number = strict_json.loads(f'{{"a":{text}}}'.encode(), is_body=True)["a"]
    assert isinstance(number, strict_json.OtherNumber)
    assert (number.text, number.is_integer) == (text, is_integer)
    assert time.process_time() - started < 0.2


@pytest.mark.parametrize("text", ["1.5", "100.0", "1e2", "-0.0", "0e999999999999999999999", "0.1"])
def test_fraction_that_fits_is_a_float_in_a_body(text: str) -> None:
    assert strict_json.loads(f'{{"a":{text}}}'.encode(), is_body=True)["a"] == float(text)


def test_json_of_32_levels_is_accepted() -> None:
    assert strict_json.loads(nested(32)) == json.loads(nested(32))


@pytest.mark.parametrize("filler", [b"9", b"[", b"{", b'"', b"\\", b'{"a":', b"\\u0000", b"1e1,"])
def test_64_kb_of_nested_json_is_checked_quickly(filler: bytes) -> None:
    started = time.process_time()
    with pytest.raises(JsonRefused):
        strict_json.loads(b'{"a":' + filler * (65_000 // len(filler)))
    assert time.process_time() - started < 0.2


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(TEXT, VALUES, max_size=5), st.booleans(), st.sampled_from([None, 1]))
@settings(max_examples=examples(200), deadline=None)
@pytest.mark.slow
def test_strict_json_reads_standard_json(value: dict[str, Any], ascii_only: bool, indent: int | None) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert strict_json.loads(raw) == json.loads(raw) == value


PIECES = ["{", "}", "[", "]", ":", ",", '"', "\\", "\\u0000", "\\ud83d", "a", "1", "-", ".", "e9", "NaN", " "]


@given(
    st.binary(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=60).map(lambda p: "".join(p).encode())
)
@settings(max_examples=examples(400), deadline=None)
@pytest.mark.slow
def test_arbitrary_bytes_give_object_or_invalid_request(raw: bytes) -> None:
    try:
        assert isinstance(strict_json.loads(raw), dict)
    except JsonRefused as refused:
        assert str(refused)
