"""Bodies and queries as the request log may keep them: without secrets and personal data.

The values of listed fields are kept. Of any other field the log has the kind and the length, because a client
may send anything under any name.
"""

import re
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson
from django.utils.encoding import escape_uri_path

from core import ids, plain_text, vault
from core.console.personal_data import masked_name
from core.http import received
from core.observing.logs import redact
from core.request_context import REQUEST_ID_PREFIX

MAX_READ = 16_384  # larger bodies are not read, because the writer shares the processor with requests
MAX_STORED = 4_096
MAX_DEPTH = 16
# Shorter text and smaller numbers are no account number and no secret.
SUSPICIOUS_LENGTH = 10
SUSPICIOUS_NUMBER = 10 ** (SUSPICIOUS_LENGTH - 1)
KEPT = frozenset({
    # Ids, states and times.
    "account_digits", "acquirer", "advanced_at", "after", "arrived_at", "at", "balance_transaction_id",
    "bank_code", "bank_reference", "bank_transaction_id", "before", "biller_id", "brand", "code",
    "completed_at", "created_at", "date", "deactivated_at", "delivery_id", "destination_id",
    "disabled_reason", "end_date", "error", "error_code", "event", "event_id", "exception_id",
    "expected_at", "expires_at", "failing_since", "failure_code", "finished_at", "id", "idempotency",
    "key", "last4", "method", "next_after", "next_attempt_at", "paid_at", "param", "part", "path",
    "paused_until", "payer_bank_code", "payer_matches", "payment_id", "payment_link_id",
    "payment_page_url", "pending_reason", "problem", "qr_code_id", "qr_data", "qr_image_url", "reason",
    "reference", "reference1", "reference2", "reference3", "refund_id", "report_at", "request_id",
    "revoked_at", "route", "scenario", "searched_to", "sending_bank", "settlement_id", "since", "slip_id",
    "slip_reference", "source", "start_date", "started_at", "state", "status", "timestamp",
    "transaction_id", "transferred_at", "trigger", "type", "until", "updated_at", "used_at", "verdict",
    "verification", "webhook_id", "withdrawal_id",
    # Amounts, counts, switches and settings of a request.
    "accepted", "advance_minutes", "advance_seconds", "advanced_seconds", "after_sequence", "amount",
    "amount_display", "amount_max", "amount_min", "amount_received", "amount_refunded", "attempts",
    "available", "awaiting_approval", "balance_after", "bank_reports", "card_payments", "completed",
    "consecutive_failures", "currency", "deliveries", "difference_seconds", "duration_ms",
    "exceptions_has_more", "expired", "expires_in_hours", "expiry_minutes", "fee", "fee_vat", "format",
    "gross", "has_more", "hold", "http_status", "inquiries", "lang", "language", "last_ping_status", "limit",
    "livemode", "max", "max_payments", "min", "net", "net_display", "number", "offset", "ok",
    "open_codes", "oldest_due_seconds", "owed", "payment_links", "payments", "pending",
    "pending_settlement", "pending_settlement_after", "pending_settlement_amount", "qr_codes",
    "quiet_hours", "refunds", "remaining", "replayed", "reserved", "reserved_after", "reserved_amount",
    "sequence", "size", "timezone", "total", "transfers", "tries_left", "unconfirmed",
    "unconfirmed_after", "unconfirmed_amount",
    # Names of banks, and our own sentences.
    "bank_name", "client_bank_name", "detail", "message", "name_th", "short_name", "warning",
})  # fmt: skip
"""Fields whose text or number is kept."""
CONTAINERS = frozenset({
    "balance_transactions", "banks", "card", "checks", "data", "deliveries", "destination",
    "destinations", "error", "events", "exception", "exceptions", "health", "moved", "payer",
    "payment_links", "payments", "qr_codes", "refunds", "requests", "settlements", "sources", "timeline",
    "transactions", "unmatched_money", "warnings", "webhooks", "withdrawals",
})  # fmt: skip
"""Fields with objects and arrays of other fields."""
# What a client wrote and a response repeats. The service made the rest of a response.
REPEATED = frozenset(["message", "detail", "reference", "bank_name", "client_bank_name"])
# Texts with blanks and letters of any script. What a client sends in another listed field is a code or an id.
TEXTS = REPEATED | {
    *("name_th", "reference1", "reference2", "reference3", "short_name", "slip_reference", "warning")
}
OTHER_IDS = frozenset({"bank_reference", "biller_id", "request_id", "transaction_id"})
"""Ids that banks and clients make. Others are ours."""
_CODE = re.compile(r"(?![A-Z][a-z]+$)[^ ]*", re.ASCII)
"""Not a word that begins with a capital letter, as names do."""
_OTHER_ID = re.compile("(?=.*[0-9])[!-~]{1,64}")
_WORD = re.compile(r"[a-z][a-z0-9-]*|\.well-known|Thai")
# What an error received, as JSON. A masked secret may have taken the last quotation mark.
_RECEIVED = re.compile(r'([Rr]eceived:? (?:[a-z_]+: )?)"(.*?)"?(\.?)\Z', re.DOTALL)
_NO_SUCH_ID = re.compile(r"(No [A-Za-z]+(?: code)? )(.*?)(\.| of this webhook\.)", re.DOTALL)
# An account, a card or a telephone number as people write it.
_SEPARATED_DIGITS = re.compile(
    rf"(?<![0-9A-Za-z])[0-9๐-๙](?:[ ./{re.escape(plain_text.DASHES)}]{{0,3}}[0-9๐-๙]){{5,14}}"
    rf"((?:[ ./{re.escape(plain_text.DASHES)}]{{0,3}}[0-9๐-๙]){{4}})(?![0-9A-Za-z])"
)
_UUID = re.compile("(?:[a-z]+[._-])?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_NAME_IN_ID = re.compile(r"(?<![0-9A-Za-z])([A-Z])[a-z]+(?![0-9A-Za-z])")


def body(content: bytes, *, is_ours: bool) -> str:
    """The text of a JSON body to keep, with at most about MAX_STORED characters.

    A body that is no JSON, or too large, is a note. `is_ours`: the service made it.
    """
    if not content or len(content) > MAX_READ:
        return size_of(content)
    try:
        parsed = orjson.loads(content)
    except orjson.JSONDecodeError:
        return f"[{len(content)} bytes, not JSON]"
    is_object = isinstance(parsed, dict)
    kept = _object(parsed, MAX_DEPTH, is_ours) if is_object else _described(parsed)
    text = orjson.dumps(kept).decode()
    if len(text) > MAX_STORED:
        text = f"{text[:MAX_STORED]}... [{len(content)} bytes]"
    return text


def size_of(content: bytes) -> str:
    """A note in place of a body that is not kept."""
    return f"[{len(content)} bytes]" if content else ""


def query(text: str) -> str:
    """A query string without the values of unknown parameters, and of ids that are none."""
    return urlencode(
        [
            (redact(name), _field(name, value, depth=0, is_ours=False))
            for name, value in parse_qsl(text, keep_blank_values=True)
        ],
        safe="[]",
    )


def _object(given: dict[str, Any], depth: int, is_ours: bool) -> Any:
    if not depth:
        return "[...]"
    kept: dict[str, Any] = {}
    for name, value in given.items():
        # Most fields pass this condition, which costs little.
        if name in KEPT and _is_harmless(name, value, is_ours):
            kept[name] = value
        else:
            shown = name if name in KEPT or name in CONTAINERS else redact(name)
            kept[shown] = _field(name, value, depth, is_ours)
    return kept


def _is_harmless(name: str, value: Any, is_ours: bool) -> bool:
    """Whether the value of a listed field cannot have a secret or personal data."""
    if type(value) is str and is_ours:
        return name not in REPEATED
    if type(value) is str:
        return len(value) < SUSPICIOUS_LENGTH and (name in TEXTS or _has_shape(name, value))
    if type(value) is int or type(value) is float:
        return is_ours or -SUSPICIOUS_NUMBER < value < SUSPICIOUS_NUMBER
    return value is None or type(value) is bool


def _field(name: str, value: Any, depth: int, is_ours: bool) -> Any:
    if isinstance(value, dict | list):
        return _items(name, value, depth, is_ours) if name in CONTAINERS else _described(value)
    if name in KEPT:
        return _scalar(name, value, is_ours)
    return _personal(name, value) if isinstance(value, str) else value and _described(value)


def _items(name: str, value: Any, depth: int, is_ours: bool) -> Any:
    if isinstance(value, dict):
        return _object(value, depth - 1, is_ours)
    return [
        _items(name, each, depth, is_ours) if isinstance(each, dict) else _scalar(name, each, is_ours)
        for each in value
    ]


def _scalar(name: str, value: Any, is_ours: bool) -> Any:
    """The value of a listed field, with masked secrets and long numbers."""
    if _is_harmless(name, value, is_ours):
        return value
    if not isinstance(value, str):
        return _described(value)
    if is_ours and name in ("message", "detail"):
        return masked(_without_input(value))
    return masked(value) if name in TEXTS or _has_shape(name, value) else _described(value)


def _without_input(message: str) -> str:
    """A message of ours without the text of a client that it repeats."""
    if no_such := _NO_SUCH_ID.fullmatch(message):
        return f"{no_such[1]}{identifier(no_such[2])}{no_such[3]}"
    return _RECEIVED.sub(lambda found: f"{found[1]}{_described(found[2])}{found[3]}", message)


def request_id(text: str) -> str:
    """The `X-Request-Id` of a client as the log keeps it: also without names."""
    if ids.looks_right(text, REQUEST_ID_PREFIX) or _UUID.fullmatch(text):
        return text
    return _NAME_IN_ID.sub(r"\1...", masked(text))[:64]


def path(text: str) -> str:
    """A path whose segments are words of ours or ids. Anybody may put anything in the place of an id."""
    return "/".join(map(_segment, text.split("/")))


def _segment(text: str) -> str:
    if not text or _WORD.fullmatch(text) or ids.looks_right(text, ""):
        return text
    return escape_uri_path(masked(text)) if _OTHER_ID.fullmatch(text) else _described(text)


def identifier(text: str) -> str:
    """An id of ours, or the length of another text."""
    return text if ids.looks_right(text, "") else _described(text)


def masked(text: str) -> str:
    """A text without secrets, and with four digits of a long number, also of one with separators."""
    shown = redact(plain_text.visible(text))
    return _SEPARATED_DIGITS.sub(lambda found: "..." + re.sub("[^0-9๐-๙]", "", found[1]), shown)


def _has_shape(name: str, value: str) -> bool:
    """Whether the text is an id or a code, as the name of its field says. A name of a person is neither."""
    if name in OTHER_IDS:
        return _OTHER_ID.fullmatch(value) is not None
    if name == "id" or name.endswith("_id"):
        return ids.looks_right(value, "")
    return value.isascii() and _CODE.fullmatch(value) is not None


def _personal(name: str, value: str) -> str | None:
    """What is kept of the text of any other field."""
    if name == "name" or name.endswith("_name"):
        return masked_name(value)
    if name.endswith("account"):
        return vault.masked("".join(filter(str.isalnum, value)))
    if name == "url":
        # Some addresses have a secret in their query.
        return redact(value.partition("?")[0])
    return _described(value)


def _described(value: Any) -> str:
    return f"[{received.describe(value, is_shown=False)}]"
