"""What both clients need to send a call."""

import os
import platform
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from thaiqr._version import __version__
from thaiqr.calls import Call

USER_AGENT = f"thaiqr-python/{__version__} python/{platform.python_version()} httpx/{httpx.__version__}"


@dataclass(frozen=True, slots=True)
class Settings:
    """The key does not appear in `repr`."""

    api_key: str = field(repr=False)
    base_url: str
    timeout: float
    max_retries: int

    @classmethod
    def of(cls, api_key: str | None, base_url: str | None, timeout: float, max_retries: int) -> Self:
        """Fill in the environment. Raises ValueError if something is missing or malformed."""
        key = _given(api_key, "THAIQR_API_KEY", "api_key")
        url = _given(base_url, "THAIQR_BASE_URL", "base_url")
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ValueError("the API key has characters that no key has")
        _check_url(url)
        return cls(key, url.rstrip("/"), timeout, max_retries)

    def arguments(self, call: Call[Any]) -> dict[str, Any]:
        """The arguments of `httpx.request`. Redirects are not followed: the key is for this host only."""
        headers = {
            "Authorization": f"Bearer {self.api_key}",
            "Accept": "*/*" if call.is_file else "application/json",
            "User-Agent": USER_AGENT,
        }
        if call.idempotency_key is not None:
            headers["Idempotency-Key"] = call.idempotency_key
        return {
            "method": call.method,
            "url": f"{self.base_url}{call.path}",
            "params": call.query or None,
            "json": call.body,
            "headers": headers,
            "timeout": self.timeout,
            "follow_redirects": False,
        }


def _given(value: str | None, variable: str, name: str) -> str:
    found = value or os.environ.get(variable, "")
    if not found.strip():
        raise ValueError(f"{name} is missing: pass it, or set {variable}")
    return found.strip()


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"the base URL must look like https://pay.example.com, not {url!r}")
