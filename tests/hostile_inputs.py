"""The corpus of hostile inputs: the request of each case, and the answers that are allowed."""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.raw_http import RawRequest

CORPUS: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "bad-inputs.json").read_text())
BASE = "/Thai/v1"
PATHS = {
    "qr.create": ("POST", f"{BASE}/qr-codes"),
    "payment.get": ("GET", f"{BASE}/payments/{{id}}"),
    "payments.list": ("GET", f"{BASE}/payments"),
    "payment.create": ("POST", "/v1/payments"),
    "refund.create": ("POST", "/v1/refunds"),
    "withdrawal.create": ("POST", "/v1/withdrawals"),
    "transactions.list": ("GET", f"{BASE}/transactions"),
    "webhook.create": ("POST", f"{BASE}/webhooks"),
    "qr.image": ("GET", "/Thai/qr-codes/{id}/image"),
}
# No answer may contain stack traces, SQL, paths of the machine, or names of libraries.
LEAK = re.compile(
    r'Traceback|File "|psycopg|django|site-packages|\bSELECT\b|\bINSERT INTO\b|relation "|/usr/'
)


@dataclass(frozen=True)
class Expected:
    """The allowed statuses of a case (`4xx`, `401`), and whether the server may close without an answer."""

    statuses: frozenset[str]
    or_closed: bool

    def allows(self, status: int) -> bool:
        return bool(self.statuses & {str(status), f"{status // 100}xx"})


def cases(*, raw: bool) -> list[dict[str, Any]]:
    """Return the cases that send raw bytes, or the cases that an HTTP client can send."""
    return [case for case in CORPUS["cases"] if is_raw(case) == raw]


def is_raw(case: Mapping[str, Any]) -> bool:
    return not case.keys().isdisjoint({"raw_b64", "raw_gen", "target"})


def name_of(case: Mapping[str, Any]) -> str:
    """The test id of a case."""
    return f"{case['id']} {case['category']} {case['why']}"[:80]


def expected(case: Mapping[str, Any]) -> Expected:
    text = case["expect_status"]
    statuses = set(re.findall(r"\b\d(?:xx|\d\d)\b", re.split("[,;]", text)[0]))
    if "normal answer" in text:
        statuses.add("2xx")
    return Expected(frozenset(statuses), "closed" in text)


def request_of(case: Mapping[str, Any], names: Mapping[str, str]) -> RawRequest:
    """The request of a case that a client can send. names: the values of `$KEY` and other placeholders."""
    method, path = PATHS[case["op"]]
    target = path.replace("{id}", case.get("path_id", ""))
    if query := case.get("query") or generated(case.get("query_gen", {})).decode():
        target += f"?{query}"
    body = _body(case, names)
    headers = {"Authorization": "Bearer $KEY", "Content-Type": "application/json"} | case.get("headers", {})
    left_out = {*case.get("omit_headers", []), *(["Content-Type"] if body is None else [])}
    kept = {name: filled(value, names) for name, value in headers.items() if name not in left_out}
    return RawRequest(case.get("method", method), target, kept, body)


def bytes_of(case: Mapping[str, Any], names: Mapping[str, str]) -> bytes:
    """The request of a case of raw bytes."""
    if "raw_b64" in case:
        raw = base64.b64decode(case["raw_b64"])
    else:
        parts = {name: case["raw_gen"].get(f"{name}_b64", "") for name in ("prefix", "suffix")}
        prefix, suffix = (base64.b64decode(part) for part in parts.values())
        raw = prefix + generated(case["raw_gen"]) + suffix
    for name in sorted(names, key=len, reverse=True):
        raw = raw.replace(name.encode(), names[name].encode())
    return raw


def filled(text: str, names: Mapping[str, str]) -> str:
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, names[name])
    return text


def generated(how: Mapping[str, Any]) -> bytes:
    """Generate a large input from its description."""
    count = how.get("count", 0)
    middle = how.get("repeat", "") * count
    if "repeat_indexed" in how:
        middle = "".join(how["repeat_indexed"] % number for number in range(count))
    if "nest_open" in how:
        middle = how["nest_open"] * count + how["middle"] + how["nest_close"] * count
    return f"{how.get('prefix', '')}{middle}{how.get('suffix', '')}".encode()


def _body(case: Mapping[str, Any], names: Mapping[str, str]) -> bytes | None:
    if "body" in case:
        return filled(case["body"], names).encode()
    if "body_b64" in case:
        return base64.b64decode(case["body_b64"])
    return generated(case["body_gen"]) if "body_gen" in case else None


def names_for(secret_key: str, payment_id: str, host: str = "testserver") -> dict[str, str]:
    """The values of the placeholders. Two of them are keys with one changed character, and in upper case."""
    other = "a" if secret_key[-1] != "a" else "b"
    return {
        "$KEY_WITH_ONE_CHAR_CHANGED": secret_key[:-1] + other,
        "$KEY_UPPER": secret_key.upper(),
        "$KEY": secret_key,
        "$PAYMENT": payment_id,
        "$BASE": BASE,
        "$HOST": host,
    }


def faults(case: Mapping[str, Any], status: int, body: bytes, names: Mapping[str, str]) -> list[str]:
    """The defects of an answer: a wrong status, a leak, or a wrong error body."""
    text, found = body.decode(), []
    if not expected(case).allows(status):
        found.append(f"status {status}")
    if LEAK.search(text) or names["$KEY"] in text:
        found.append("a leak")
    if status >= 400 and not _is_envelope(text):
        found.append("no envelope")
    return [f"{fault}: {text[:200]}" for fault in found]


def _is_envelope(text: str) -> bool:
    try:
        error = json.loads(text)["error"]
    except (ValueError, KeyError, TypeError):
        return False
    return {"code", "message", "type"} <= set(error) <= {"code", "message", "type", "param", "detail"}
