"""Which IP addresses are on the public internet.

Source: the IANA special-purpose registries. IPv6 forms that carry an IPv4 address (NAT64, 6to4, Teredo) are
refused, because a gateway may translate them to an internal address. `ipaddress.is_global` differs between
Python releases and accepts several of these.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

GLOBAL_UNICAST = IPv6Network("2000::/3")

BLOCKED_IPV4 = (
    IPv4Network("0.0.0.0/8"),  # this network
    IPv4Network("10.0.0.0/8"),  # private
    IPv4Network("100.64.0.0/10"),  # shared by carriers
    IPv4Network("127.0.0.0/8"),  # loopback
    IPv4Network("169.254.0.0/16"),  # link-local, cloud metadata
    IPv4Network("172.16.0.0/12"),  # private
    IPv4Network("192.0.0.0/24"),  # IETF protocols
    IPv4Network("192.0.2.0/24"),  # documentation
    IPv4Network("192.88.99.0/24"),  # 6to4 relay
    IPv4Network("192.168.0.0/16"),  # private
    IPv4Network("198.18.0.0/15"),  # benchmarks
    IPv4Network("198.51.100.0/24"),  # documentation
    IPv4Network("203.0.113.0/24"),  # documentation
    IPv4Network("224.0.0.0/4"),  # multicast
    IPv4Network("240.0.0.0/4"),  # reserved, broadcast
)

# Inside global unicast. Everything outside it is refused.
BLOCKED_IPV6 = (
    IPv6Network("2001::/23"),  # IETF protocols: Teredo, ORCHID, benchmarks
    IPv6Network("2001:db8::/32"),  # documentation
    IPv6Network("2002::/16"),  # 6to4
    IPv6Network("3fff::/20"),  # documentation
)


def is_public(address: Address) -> bool:
    """Whether this is a globally routable unicast address."""
    address = unwrap(address)
    if isinstance(address, IPv4Address):
        return not any(address in network for network in BLOCKED_IPV4)
    if address.scope_id is not None or address not in GLOBAL_UNICAST:
        return False
    return not any(address in network for network in BLOCKED_IPV6)


def unwrap(address: Address) -> Address:
    """Return the IPv4 address of `::ffff:a.b.c.d`, or any other address unchanged."""
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address
