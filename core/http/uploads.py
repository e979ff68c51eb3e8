"""The requests with a large body: files that staff upload in the console, and slips of payers."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.http import parse_cookie

from core.http.responses import MAX_BODY


class UploadKind(StrEnum):
    STAFF = "staff"
    CLAIM = "claim"  # the form of a claim page, with or without a picture
    SLIP = "slip"  # a merchant's form with the picture of a slip


# Users with the permission of the page may upload to the path.
UPLOAD_PERMISSIONS = {
    "/admin/reconciliation/statement/import/": "reconciliation.import_statement",
    "/admin/reconciliation/slipcheck/check/": "reconciliation.check_slip",
    "/shop/till/slip": "shop.use_till",
}
_LOGO_PATH = re.compile(r"/admin/merchants/merchant/mch_[0-9A-Za-z]{27,29}/do/page-settings/", re.ASCII)
LOGO_PERMISSION = "merchants.set_page_settings"
MAX_FILE = 64 * 1024 * 1024
"""Bytes of a file. Larger files are imported by a command."""
MAX_PICTURE = 10_000_000
"""Bytes of a slip's picture. A telephone's photograph has 3 to 6 MB."""
DEADLINE_SECONDS = 120.0
"""From the first wait for a slot to the end of the body."""
GRACE_SECONDS, MIN_BYTES_PER_SECOND = 10.0, 64 * 1024
"""A body that is slower than this after the grace period is refused, because others wait for its slot."""
MAX_CONCURRENT = {UploadKind.STAFF: 2, UploadKind.CLAIM: 16, UploadKind.SLIP: 8}
"""Uploads at once in a process. Those of staff keep their slot while a thread works on them.

One of these by one user, at one claim link, or of one merchant."""
PICTURE_TOO_LARGE = "a picture may have 10 MB"
TOO_LARGE = "qr.body_too_large"
"""Set in the META of a request whose body the web server has dropped."""
_SESSION_KEY = re.compile(r"[a-z0-9]{32}", re.ASCII)
_SLIP_PATHS = {"/v1/slips", "/Thai/v1/slips"}
_CLAIM_PATH = re.compile(r"/claim/(clt_[0-9A-Za-z]{32})", re.ASCII)


def kind_of(meta: Mapping[str, Any]) -> UploadKind | None:
    """The kind of upload that this request may be, by its unverified headers."""
    if meta["REQUEST_METHOD"] != "POST":
        return None
    if session_key_of(meta):
        return UploadKind.STAFF
    if claim_token_of(meta):
        return UploadKind.CLAIM
    return UploadKind.SLIP if meta["PATH_INFO"] in _SLIP_PATHS and _is_form(meta) else None


def limit_of(meta: Mapping[str, Any]) -> int:
    """Bytes that the body of this request may have, by its unverified headers."""
    kind = kind_of(meta)
    if kind is None:
        return MAX_BODY
    return MAX_BODY + (MAX_FILE if kind is UploadKind.STAFF else MAX_PICTURE)


def is_too_large(meta: Mapping[str, Any]) -> bool:
    """Whether the body is over its limit. The web server has dropped it then."""
    length = meta.get("CONTENT_LENGTH") or "0"
    is_number = length.isdigit() and len(length) < 19
    return bool(meta.get(TOO_LARGE)) or (is_number and int(length) > limit_of(meta))


def permission_of(path: str) -> str | None:
    """What a user needs to upload to this path, or None if nobody can."""
    return LOGO_PERMISSION if _LOGO_PATH.fullmatch(path) else UPLOAD_PERMISSIONS.get(path)


def session_key_of(meta: Mapping[str, Any]) -> str:
    """The unverified session key of an upload by staff; "" for every other request."""
    if permission_of(meta["PATH_INFO"]) is None or meta["REQUEST_METHOD"] != "POST":
        return ""
    key = parse_cookie(meta.get("HTTP_COOKIE", "")).get(settings.SESSION_COOKIE_NAME, "")
    return key if _SESSION_KEY.fullmatch(key) else ""


def claim_token_of(meta: Mapping[str, Any]) -> str:
    """The unverified token of a claim page whose form is sent; "" for every other request."""
    found = _CLAIM_PATH.fullmatch(meta["PATH_INFO"])
    return found[1] if found and _is_form(meta) else ""


def _is_form(meta: Mapping[str, Any]) -> bool:
    return str(meta.get("CONTENT_TYPE", "")).lower().startswith("multipart/form-data")
