"""The security log: logins, use of keys, refused requests, views of personal data.

Its lines are JSON objects with `"log": "security"`. docs/operations.md lists the fields.
"""

import logging
import time
from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Any

import orjson
from django.db import transaction

from core import request_context
from core.observing.logs import LogRateLimit, redact

log = logging.getLogger("security")
MAX_VALUE_LENGTH = 200
REFUSALS_PER_SECOND = 20  # lines for one address and error code; the rest is only counted
_denied_log_limit = LogRateLimit(REFUSALS_PER_SECOND)


class SecurityEvent(StrEnum):
    LOGIN = "login"
    LOGIN_FAILED = "login_failed"
    LOGOUT = "logout"
    LOCKOUT = "lockout"
    SECOND_FACTOR_ACCEPTED = "second_factor_accepted"
    SECOND_FACTOR_FAILED = "second_factor_failed"
    SECOND_FACTOR_CHANGED = "second_factor_changed"
    SESSIONS_ENDED = "sessions_ended"
    PASSWORD_CHANGED = "password_changed"  # noqa: S105 (the name of an event)
    ROLE_CHANGED = "role_changed"
    KEY_ISSUED = "key_issued"
    KEY_ROLLED = "key_rolled"
    KEY_REVOKED = "key_revoked"
    KEY_USED_FROM_NEW_NETWORK = "key_used_from_new_network"
    REQUEST_REFUSED = "request_refused"
    SECRET_REVEALED = "secret_revealed"  # noqa: S105
    SECRET_ROTATED = "secret_rotated"  # noqa: S105
    OUTGOING_MONEY_APPROVED = "outgoing_money_approved"
    OUTGOING_MONEY_REJECTED = "outgoing_money_rejected"
    PAYOUT_ACCOUNT_ADDED = "payout_account_added"
    PAYOUT_ACCOUNT_REMOVED = "payout_account_removed"
    PAYOUT_LIST_SWITCHED = "payout_list_switched"
    PAYOUT_SCHEDULE_CHANGED = "payout_schedule_changed"
    CLAIM_REFUSED = "claim_refused"
    PERSONAL_DATA_VIEWED = "personal_data_viewed"


def record(
    event: SecurityEvent,
    *,
    subject: str = "",
    merchant_id: str = "",
    code: str = "",
    status: int | None = None,
    network: str = "",
    changes: Sequence[str] = (),
    suppressed: int = 0,
) -> None:
    """Write one line. Actor, address and request id come from `core.request_context`.

    A line has no fields besides these and the parameters. Never pass a secret, a name or an account number.
    subject: what the event is about, such as `staff:somsri`, `key:ab12cd34` or an id of ours.
    code: the reason or the kind, such as an error code. changes: what is different now, such as `+is_staff`.
    suppressed: how many lines of this kind were not written before this one.
    """
    now = request_context.current()
    given = {
        "subject": subject,
        "merchant": merchant_id,
        "code": code,
        "status": status,
        "network": network,
        "changes": [_safe(change) for change in changes],
        "suppressed": suppressed,
    }
    line: dict[str, Any] = {"at": time.time(), "log": "security", "event": event.value}
    line |= {name: _safe(getattr(now, name)) or None for name in ("actor", "address", "request_id")}
    line |= {name: _safe(each) if isinstance(each, str) else each for name, each in given.items() if each}
    log.info(orjson.dumps(line).decode())


def record_on_commit(event: SecurityEvent, **fields: Any) -> None:
    """Call `record` after the transaction has committed; after a rollback, do nothing."""
    transaction.on_commit(partial(record, event, **fields), robust=True)


def record_denied_request(*, status: int, code: str) -> None:
    """Write a line for a request that was refused. One client cannot flood the log."""
    suppressed = _denied_log_limit.admit(f"{request_context.current().address} {code}")
    if suppressed is not None:
        record(SecurityEvent.REQUEST_REFUSED, status=status, code=code, suppressed=suppressed)


def _safe(text: str) -> str:
    return redact(text)[:MAX_VALUE_LENGTH]
