"""Limits of file uploads in the console, the only requests with a large body."""

import re
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import parse_cookie

from core.http import MAX_BODY

# Users with the permission of the page may upload to the path.
UPLOAD_PERMISSIONS = {
    "/admin/reconciliation/statement/import/": "reconciliation.import_statement",
    "/admin/reconciliation/slipcheck/check/": "reconciliation.check_slip",
}
MAX_FILE = 64 * 1024 * 1024
"""Bytes of a file. Larger files are imported by a command."""
DEADLINE_SECONDS = 120.0
"""From the first wait for a slot to the end of the body."""
GRACE_SECONDS, MIN_BYTES_PER_SECOND = 10.0, 64 * 1024
"""A body that is slower than this after the grace period is refused, because others wait for its slot."""
MAX_CONCURRENT = 2
"""Uploads at once in a process, so that most threads serve other requests."""
MAX_CONCURRENT_PER_USER = 1
"""Of these by one user."""
_SESSION_KEY = re.compile(r"[a-z0-9]{32}", re.ASCII)


def limit_of(environ: Mapping[str, Any]) -> int:
    """Bytes that the body of this request may have, by its unverified headers."""
    return MAX_BODY + MAX_FILE if session_key_of(environ) else MAX_BODY


def session_key_of(environ: Mapping[str, Any]) -> str:
    """The unverified session key of an upload; "" for every other request."""
    if environ["PATH_INFO"] not in UPLOAD_PERMISSIONS or environ["REQUEST_METHOD"] != "POST":
        return ""
    key = parse_cookie(environ.get("HTTP_COOKIE", "")).get(settings.SESSION_COOKIE_NAME, "")
    return key if _SESSION_KEY.fullmatch(key) else ""
