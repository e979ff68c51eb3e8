"""What JSON Schema cannot say of a valid request. Loaded by schemathesis, not by pytest."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
import schemathesis

from core import strict_json
from core.errors import InvalidRequest

LARGEST_METADATA = 8_192


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """JSON Schema takes 15.0 for an integer; the service does not."""
    if not isinstance(body, dict):
        return body
    return {name: int(value) if _is_whole(value) else value for name, value in body.items()}


@schemathesis.hook
def filter_case(context: Any, case: Any) -> bool:
    """Whether a request that is generated as a valid one is one."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return True
    return _fits(case.body) and _in_order(case.query or {})


def _is_whole(value: object) -> bool:
    return isinstance(value, float) and value.is_integer()


def _fits(body: object) -> bool:
    """Integers of 64 bit, nothing twice, no half characters, and metadata of a size."""
    if not isinstance(body, dict):
        return True
    try:
        strict_json.loads(orjson.dumps(body))
        return len(orjson.dumps(body.get("metadata"))) <= LARGEST_METADATA
    except (InvalidRequest, TypeError):
        return False


def _in_order(query: Mapping[str, Any]) -> bool:
    dates = [_instant(query[name]) for name in ("start_date", "end_date") if name in query]
    # Beyond these years the offset or the day after may leave the calendar.
    return dates == sorted(dates) and all(1 < at.year < 9999 for at in dates)


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
