"""The one way in for more than a small body: files that staff upload in the console."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import parse_cookie

from core.http import MAX_BODY

PATHS = {"/admin/receipts/statement/import/", "/admin/receipts/slipcheck/check/"}
MAX_FILE = 64 * 1024 * 1024
"""Bytes of a file; what is larger is for the command line."""
SECONDS = 120.0
AT_ONCE = 2
"""Uploads in a process, from the body's first byte to the answer: most threads are left to the rest."""


def limit_of(environ: Mapping[str, Any]) -> int:
    """Bytes that the body of this request may have, going by what its headers pretend."""
    return MAX_BODY + MAX_FILE if is_upload(environ) else MAX_BODY


def is_upload(environ: Mapping[str, Any]) -> bool:
    return (
        environ["PATH_INFO"] in PATHS
        and environ["REQUEST_METHOD"] == "POST"
        and settings.SESSION_COOKIE_NAME in parse_cookie(environ.get("HTTP_COOKIE", ""))
    )
