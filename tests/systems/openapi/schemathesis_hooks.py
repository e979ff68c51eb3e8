"""Rules of valid requests that JSON Schema cannot express. Loaded by schemathesis, not by pytest."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
import schemathesis

from core import dates, plain_text
from core.http import strict_json
from core.http.strict_json import JsonRefused

LARGEST_METADATA = 8_192


@schemathesis.hook
def filter_case(context: Any, case: Any) -> bool:
    """Whether a request that was generated as valid is valid."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return True
    named = {**(case.query or {}), **(case.path_parameters or {})}
    return _fits(case.body) and _in_order(case.query or {}) and not any(map(_is_buddhist, named.values()))


def _fits(body: object) -> bool:
    """Whether the body is strict JSON, its metadata is not too large, and its texts can be seen.

    For JSON Schema 1500.0 is an integer. As an amount it is refused, because it may mean baht.
    """
    if not isinstance(body, dict):
        return True
    if isinstance(body.get("amount"), float):
        return False
    if any(isinstance(value, str) and value and not plain_text.visible(value) for value in body.values()):
        return False
    try:
        strict_json.loads(orjson.dumps(body), is_body=True)
        return len(orjson.dumps(body.get("metadata"))) <= LARGEST_METADATA
    except (JsonRefused, TypeError):
        return False


def _is_buddhist(value: object) -> bool:
    return isinstance(value, str) and dates.buddhist_year(value) is not None


def _in_order(query: Mapping[str, Any]) -> bool:
    dates = [_instant(query[name]) for name in ("start_date", "end_date") if name in query]
    # In the first and the last year an offset or the next day may be outside of the calendar.
    return dates == sorted(dates) and all(1 < at.year < 9999 for at in dates)


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
