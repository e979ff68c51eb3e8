"""May a webhook be sent to this URL? Judged when it is registered and again before every post.

Nothing here connects. The URL is read by the same parser that the client sends with, so both always
mean the same host.
"""

import re
import socket
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from ipaddress import ip_address

from urllib3.util import Url, parse_url

from webhooks.http import dns
from webhooks.http.dns import LookupFailed, Resolver
from webhooks.http.public_networks import Address, Network, is_public, unwrap

MAX_URL_LENGTH = 2048
MAX_HOST_LENGTH = 253
LOOKUP_SECONDS = 2.0
DEFAULT_PORTS = {"https": 443, "http": 80}
# RFC 6761, 6762 and common practice: names that only mean something inside a network.
INTERNAL_DOMAINS = frozenset({"localhost", "localdomain", "local", "internal"})
HOST_NAME = re.compile(r"(?:(?!-)[a-z0-9-]{1,63}(?<!-)\.)*(?!-)[a-z0-9-]{1,63}(?<!-)")
# A last label that reads as a number makes resolvers take the whole as an address: 0x7f.1, 2130706433.
NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")


class RejectionReason(StrEnum):
    """Why a target was refused: for our records, never for the caller."""

    MALFORMED = "malformed"
    SCHEME = "scheme"
    CREDENTIALS = "credentials"
    HOST = "host"
    PORT = "port"
    ADDRESS = "address"
    DNS = "dns"


class UrlRejected(ValueError):
    """The URL is refused. One message for every cause, or it would answer as a port scanner."""

    def __init__(self, reason: RejectionReason) -> None:
        super().__init__("This URL cannot be used: it must be a public https address that can be reached.")
        self.reason = reason


@dataclass(frozen=True)
class UrlPolicy:
    """What is allowed beyond nothing. In `allowed_networks` any port goes, and http where it is allowed."""

    ports: frozenset[int] = frozenset({443, 8443})
    allowed_networks: tuple[Network, ...] = ()
    allow_http: bool = False


@dataclass(frozen=True)
class Target:
    """A URL taken apart. `host` is lower-case ASCII, an IPv6 address without its brackets."""

    scheme: str
    host: str
    port: int
    path_and_query: str

    @cached_property
    def address(self) -> Address | None:
        """The address, when the host is one."""
        return _literal(self.host)

    @property
    def url(self) -> str:
        """The URL in its normal form, with the port only where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path_and_query}"

    def needs_allowed_network(self, policy: UrlPolicy) -> bool:
        """True when only addresses in the allowed networks will do."""
        return self.scheme == "http" or self.port not in policy.ports or self._is_internal_name

    @property
    def _is_internal_name(self) -> bool:
        _, dot, top = self.host.rpartition(".")
        return self.address is None and (not dot or top in INTERNAL_DOMAINS)


@lru_cache(maxsize=4096)
def parse_target(url: str, policy: UrlPolicy) -> Target:
    """Take the URL apart and judge all that can be judged without a look-up. Raises UrlRejected."""
    parts = _parse(url)
    target = Target(
        scheme=_scheme(parts, policy),
        host=_host(parts.host or ""),
        port=parts.port if parts.port is not None else DEFAULT_PORTS[parts.scheme or ""],
        path_and_query=parts.request_uri,
    )
    if target.port == 0 or (target.needs_allowed_network(policy) and not policy.allowed_networks):
        raise UrlRejected(RejectionReason.PORT if target.port not in policy.ports else RejectionReason.HOST)
    if target.address is not None:
        _check_addresses([target.address], target, policy)
    if len(target.url) > MAX_URL_LENGTH:
        raise UrlRejected(RejectionReason.MALFORMED)
    return target


def is_allowed_address(address: Address, policy: UrlPolicy) -> bool:
    """True when the address is public or lies in an allowed network."""
    return in_allowed_networks(address, policy) or is_public(unwrap(address))


def in_allowed_networks(address: Address, policy: UrlPolicy) -> bool:
    """True when the address, unwrapped from IPv6 if need be, lies in a network that the policy names."""
    return any(unwrap(address) in network for network in policy.allowed_networks)


def is_allowed_for(address: Address, target: Target, policy: UrlPolicy) -> bool:
    """True when this target may be reached at this address."""
    return (in_allowed_networks if target.needs_allowed_network(policy) else is_allowed_address)(
        address, policy
    )


def resolve(
    target: Target,
    policy: UrlPolicy,
    resolver: Resolver = socket.getaddrinfo,
    timeout: float = LOOKUP_SECONDS,
    *,
    merchant_id: str = "",
) -> list[Address]:
    """The addresses to dial, each judged: one bad address refuses the whole name. Raises UrlRejected.

    The look-up counts against what `merchant_id` may have at once.
    """
    if target.address is not None:
        addresses = [unwrap(target.address)]
    else:
        addresses = _look_up(target, resolver, timeout, merchant_id)
    _check_addresses(addresses, target, policy)
    return addresses


def _look_up(target: Target, resolver: Resolver, timeout: float, merchant_id: str) -> list[Address]:
    try:
        found = dns.look_up(
            target.host, target.port, merchant_id=merchant_id, resolver=resolver, timeout=timeout
        )
    except LookupFailed:
        raise UrlRejected(RejectionReason.DNS) from None
    if not found:
        raise UrlRejected(RejectionReason.DNS)
    return list(dict.fromkeys(unwrap(ip_address(text)) for text in found))


def _check_addresses(addresses: list[Address], target: Target, policy: UrlPolicy) -> None:
    if not all(is_allowed_for(address, target, policy) for address in addresses):
        raise UrlRejected(RejectionReason.ADDRESS)


def _parse(url: str) -> Url:
    if len(url) > MAX_URL_LENGTH or any(_is_unprintable(character) for character in url):
        raise UrlRejected(RejectionReason.MALFORMED)
    try:
        parts = parse_url(url)
    except ValueError:
        raise UrlRejected(RejectionReason.MALFORMED) from None
    # Wider than user:password@, because parsers disagree on the host of https://a.example?@b.example/.
    if "@" in url.partition("//")[2].partition("/")[0]:
        raise UrlRejected(RejectionReason.CREDENTIALS)
    if parts.fragment is not None:
        raise UrlRejected(RejectionReason.MALFORMED)
    return parts


def _is_unprintable(character: str) -> bool:
    """Backslashes, spaces, control and invisible characters: Unicode categories Z and C."""
    return character == "\\" or unicodedata.category(character)[0] in "ZC"


def _scheme(parts: Url, policy: UrlPolicy) -> str:
    if parts.scheme == "https" or (parts.scheme == "http" and policy.allow_http):
        return parts.scheme
    raise UrlRejected(RejectionReason.SCHEME)


def _host(host: str) -> str:
    literal = _literal(host.strip("[]"))
    if literal is not None and "%" not in host:
        return str(literal)
    name = host.removesuffix(".")
    is_name = len(name) <= MAX_HOST_LENGTH and HOST_NAME.fullmatch(name)
    if not is_name or NUMERIC_LABEL.fullmatch(name.rpartition(".")[2]):
        raise UrlRejected(RejectionReason.HOST)
    return name


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
