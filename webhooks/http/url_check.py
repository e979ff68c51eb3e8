"""Check whether a webhook may be sent to a URL: at registration and again before every post.

Nothing here connects. The client sends to the parsed URL, so check and post use the same host.
"""

import asyncio
import re
import socket
import unicodedata
from dataclasses import dataclass
from functools import cached_property, lru_cache
from ipaddress import ip_address

from django.db.models import TextChoices
from urllib3.util import Url, parse_url

from webhooks.http import dns
from webhooks.http.dns import Resolver
from webhooks.http.public_networks import Address, Network, is_public, unwrap

MAX_URL_LENGTH = 2048
MAX_HOST_LENGTH = 253
LOOKUP_SECONDS = 2.0
DEFAULT_PORTS = {"https": 443, "http": 80}
# Names that have a meaning only inside a network (RFC 6761, 6762 and common practice).
INTERNAL_DOMAINS = frozenset({"localhost", "localdomain", "local", "internal"})
HOST_NAME = re.compile(r"(?:(?!-)[a-z0-9-]{1,63}(?<!-)\.)*(?!-)[a-z0-9-]{1,63}(?<!-)")
PORT = re.compile(
    r"[a-z]+://(?:\[[^]/?#@]*\]|[^][:/?#@]*):([^][:/?#@]+)(?:[/?#]|\Z)", re.ASCII | re.IGNORECASE
)
MAX_PORT = 65_535
OTHER_CHARACTER = re.compile(r"[^a-z0-9.%:\[\]-]")
# Resolvers read a name as an address if its last label is a number, such as 0x7f.1 or 2130706433.
NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")


class RejectionReason(TextChoices):
    """Why a URL was rejected, with the words for merchants."""

    MALFORMED = "malformed", "the URL is malformed or has a fragment"
    SCHEME = "scheme", "the scheme is not https"
    CREDENTIALS = "credentials", "the URL has credentials"
    AT_SIGN = "at_sign", "the query has an @ and follows the host: write a / before the ?"
    HOST_CHARACTER = (
        "host_character",
        "the host name has another character than letters, digits, hyphens and dots",
    )
    HOST = "host", "the host is not a public name or address"
    PORT = "port", "the port is not one of those that are allowed: {ports}"
    ADDRESS = "address", "the address is not public"
    DNS = "dns", "the host name has no address in DNS"


NETWORK_REASONS = frozenset({RejectionReason.ADDRESS, RejectionReason.DNS})
"""What the URL alone does not tell. Only test merchants read it, because it would help a port scanner."""


class UrlRejected(ValueError):
    """The URL is rejected, with the same message for every reason."""

    def __init__(self, reason: RejectionReason) -> None:
        super().__init__("This URL cannot be used: it must be a public https address that can be reached.")
        self.reason = reason


@dataclass(frozen=True)
class UrlPolicy:
    """The allowed URLs. Addresses in `allowed_networks` may have any port, and http if `allow_http`."""

    ports: frozenset[int] = frozenset({443, 8443})
    allowed_networks: tuple[Network, ...] = ()
    allow_http: bool = False


@dataclass(frozen=True)
class Target:
    """The parts of a URL. `host` is lower-case ASCII; an IPv6 address has no brackets."""

    scheme: str
    host: str
    port: int
    path_and_query: str

    @cached_property
    def address(self) -> Address | None:
        return _literal(self.host)

    @property
    def url(self) -> str:
        """The normal form of the URL, without a default port."""
        return f"{self.scheme}://{self.host_and_port}{self.path_and_query}"

    @cached_property
    def host_and_port(self) -> str:
        """The host as in a URL, with its port unless it is the default one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    def needs_allowed_network(self, policy: UrlPolicy) -> RejectionReason | None:
        """Why only addresses in the allowed networks may be reached, or None if public ones may be, too."""
        if self.scheme == "http":
            return RejectionReason.SCHEME
        if self.port not in policy.ports:
            return RejectionReason.PORT
        _, dot, top = self.host.rpartition(".")
        is_internal_name = self.address is None and (not dot or top in INTERNAL_DOMAINS)
        return RejectionReason.HOST if is_internal_name else None


@lru_cache(maxsize=4096)
def parse_target(url: str, policy: UrlPolicy) -> Target:
    """Parse the URL and check everything that needs no look-up. Raises UrlRejected."""
    parts = _parse(url)
    scheme = parts.scheme or ""
    if scheme != "https" and not (scheme == "http" and policy.allow_http):
        raise UrlRejected(RejectionReason.SCHEME)
    target = Target(
        scheme=scheme,
        host=_host(parts.host or ""),
        port=parts.port if parts.port is not None else DEFAULT_PORTS[scheme],
        path_and_query=parts.request_uri,
    )
    if target.port == 0:
        raise UrlRejected(RejectionReason.PORT)
    if (reason := target.needs_allowed_network(policy)) and not policy.allowed_networks:
        raise UrlRejected(reason)
    if target.address is not None:
        _check_addresses([target.address], target, policy)
    if len(target.url) > MAX_URL_LENGTH:
        raise UrlRejected(RejectionReason.MALFORMED)
    return target


def is_allowed(address: Address, target: Target, policy: UrlPolicy) -> bool:
    if any(unwrap(address) in network for network in policy.allowed_networks):
        return True
    return is_public(address) and not target.needs_allowed_network(policy)


async def resolve(
    target: Target,
    policy: UrlPolicy,
    resolver: Resolver = socket.getaddrinfo,
    timeout: float = LOOKUP_SECONDS,
    *,
    merchant_id: str = "",
) -> list[Address]:
    """Return the addresses to connect to. One forbidden address rejects the whole name. Raises UrlRejected.

    The look-up counts against the limit of `merchant_id`.
    """
    if target.address is not None:
        found = [target.host]
    else:
        try:
            async with asyncio.timeout(timeout):
                found = await dns.look_up(
                    target.host, target.port, merchant_id=merchant_id, resolver=resolver
                )
        except dns.FAILURES:
            raise UrlRejected(RejectionReason.DNS) from None
    addresses = list(dict.fromkeys(unwrap(ip_address(text)) for text in found))
    if not addresses:
        raise UrlRejected(RejectionReason.DNS)
    _check_addresses(addresses, target, policy)
    return addresses


def _check_addresses(addresses: list[Address], target: Target, policy: UrlPolicy) -> None:
    if not all(is_allowed(address, target, policy) for address in addresses):
        raise UrlRejected(target.needs_allowed_network(policy) or RejectionReason.ADDRESS)


def _parse(url: str) -> Url:
    # Spaces, control and invisible characters have a Unicode category Z or C.
    is_plain = all(each != "\\" and unicodedata.category(each)[0] not in "ZC" for each in url)
    if len(url) > MAX_URL_LENGTH or not is_plain:
        raise UrlRejected(RejectionReason.MALFORMED)
    try:
        parts = parse_url(url)
    except ValueError:
        port = found[1] if (found := PORT.match(url)) else "0"
        is_port = port.isascii() and port.isdigit() and int(port[:6]) <= MAX_PORT
        raise UrlRejected(RejectionReason.MALFORMED if is_port else RejectionReason.PORT) from None
    # Any @, because parsers disagree about the host of https://a.example?@b.example/.
    before_path = url.partition("//")[2].partition("/")[0]
    if "@" in before_path:
        is_in_query = "?" in before_path.partition("@")[0]
        raise UrlRejected(RejectionReason.AT_SIGN if is_in_query else RejectionReason.CREDENTIALS)
    if parts.fragment is not None:
        raise UrlRejected(RejectionReason.MALFORMED)
    return parts


def _host(host: str) -> str:
    literal = _literal(host.strip("[]"))
    if literal is not None and "%" not in host:
        return str(literal)
    name = host.removesuffix(".")
    if OTHER_CHARACTER.search(name):
        raise UrlRejected(RejectionReason.HOST_CHARACTER)
    is_name = len(name) <= MAX_HOST_LENGTH and HOST_NAME.fullmatch(name)
    if not is_name or NUMERIC_LABEL.fullmatch(name.rpartition(".")[2]):
        raise UrlRejected(RejectionReason.HOST)
    return name


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
