"""The address of a client, behind trusted proxies, and the network of an address."""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _


def address_of(request: HttpRequest) -> str:
    """The address of the client, also behind `PROXY_HOPS` proxies of ours.

    Each proxy appends the address of its client to `X-Forwarded-For`. A client may have written the entries
    before these. Returns "" if the header has fewer entries, or if the entry is no IP address.
    """
    if settings.PROXY_HOPS == 0:
        return _normalized(str(request.META.get("REMOTE_ADDR", "")))
    entries = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    return _normalized(entries[-settings.PROXY_HOPS].strip()) if len(entries) >= settings.PROXY_HOPS else ""


@lru_cache(maxsize=4096)
def network_of(address: str, *, ipv6_bits: int, ipv4_bits: int = 32) -> str:
    """The network of `address` with a prefix of that many bits, such as `203.0.113.0/24`. "" for ""."""
    parsed = _parsed(address)
    if parsed is None:
        return ""
    bits = ipv4_bits if parsed.version == 4 else ipv6_bits
    return str(ip_network((parsed, bits), strict=False))


_parsed_network = lru_cache(maxsize=4096)(ip_network)


def is_among(address: str, networks: Iterable[str]) -> bool:
    """Whether `address` is in one of the networks (CIDR)."""
    caller = _parsed(address)
    return caller is not None and any(caller in _parsed_network(network) for network in networks)


def normalized_networks(networks: Iterable[str]) -> list[str]:
    """The networks as CIDRs; an address is a network of one. Raises ValueError with the reason."""
    found = []
    for text in map(str.strip, networks):
        try:
            found.append(str(ip_network(text)))
        except ValueError:
            raise ValueError(_("%(text)s is not a network such as 203.0.113.0/24") % {"text": text}) from None
    return found


@lru_cache(maxsize=4096)
def _normalized(text: str) -> str:
    address = _parsed(text)
    return "" if address is None else str(address)


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    # A socket for both families reports an IPv4 client as ::ffff:203.0.113.7. A zone id is free text.
    return address.ipv4_mapped or IPv6Address(int(address))
