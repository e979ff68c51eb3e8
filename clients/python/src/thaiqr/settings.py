"""What both clients need to send a call."""

import os
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import httpx

from thaiqr._version import __version__
from thaiqr.calls import Call

H = TypeVar("H")
API_PATH = re.compile(r"(/Thai)?/v1$|/Thai$", re.IGNORECASE)
ENVIRONMENT = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""What httpx reads to connect."""
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
        return cls(key, _without_api_path(url), timeout, max_retries)

    def changed(self, timeout: float | None, max_retries: int | None) -> Self:
        """These settings with what is given."""
        return replace(
            self,
            timeout=self.timeout if timeout is None else timeout,
            max_retries=self.max_retries if max_retries is None else max_retries,
        )

    def arguments(self, call: Call[Any]) -> dict[str, Any]:
        """The arguments of `httpx.request`. Redirects are not followed: the key is for this host only."""
        headers: dict[str, Any] = {
            "Authorization": f"Bearer {self.api_key}",
            "Accept": "*/*" if call.is_file else "application/json",
            "User-Agent": USER_AGENT,
        }
        if call.idempotency_key is not None:
            headers["Idempotency-Key"] = call.idempotency_key.encode()
        return {
            "method": call.method,
            "url": f"{self.base_url}{call.path}",
            "params": call.query or None,
            **({"json": call.body} if call.picture is None else _form(call.picture, call.body or {})),
            "headers": headers,
            "timeout": self.timeout,
            "follow_redirects": False,
        }


def _form(picture: bytes, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"files": {"picture": picture}, "data": {name: str(value) for name, value in fields.items()}}


def _given(value: str | None, variable: str, name: str) -> str:
    found = value or os.environ.get(variable, "")
    if not found.strip():
        raise ValueError(f"{name} is missing: pass it, or set {variable}")
    return found.strip()


def _check_url(url: str) -> None:
    if not _is_base_url(url):
        raise ValueError(f"the base URL must look like https://pay.example.com, not {url!r}")


def _is_base_url(url: str) -> bool:
    try:
        parts, _ = urlsplit(url), httpx.URL(url)
        is_port = parts.port != 0
    except (httpx.InvalidURL, ValueError):
        return False
    is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and is_port
    return is_address and not (parts.query or parts.fragment)


def _without_api_path(url: str) -> str:
    """The address of the service. Each call adds its whole path, so `/Thai/v1` or `/v1` is taken off."""
    return API_PATH.sub("", url.rstrip("/")).rstrip("/")


def connected(make: Callable[[], H]) -> H:
    """Make an HTTP client. It reads proxies and certificates from the environment; raises ValueError."""
    try:
        return make()
    except (ValueError, OSError, ImportError, httpx.InvalidURL) as error:
        used = [name for name in ENVIRONMENT if os.environ.get(name) or os.environ.get(name.lower())]
        shown = ", ".join(used) or "the environment"
        raise ValueError(f"no connection can be made with {shown}: {error}") from error
