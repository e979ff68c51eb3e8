from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

import pytest

from tests.webhooks.hostile_urls import CORPUS
from webhooks.http.public_networks import BLOCKED_IPV4, BLOCKED_IPV6, is_public


@pytest.mark.parametrize("row", CORPUS["blocked_ranges"], ids=lambda row: row["cidr"])
def test_no_address_of_a_blocked_range_is_public(row: dict[str, str]) -> None:
    network = ip_network(row["cidr"].removeprefix("NOT "))
    for edge in (network[0], network[1], network[-2], network[-1]):
        assert is_public(edge) is row["cidr"].startswith("NOT")


def neighbours() -> Iterator[tuple[str, bool]]:
    """Addresses one outside a blocked range that is not next to another one."""
    blocked = [ip_network(row["cidr"]) for row in CORPUS["blocked_ranges"] if "NOT" not in row["cidr"]]
    unicast = ip_network("2000::/3")
    for network in blocked:
        for number in (int(network[0]) - 1, int(network[-1]) + 1):
            if 0 <= number < 1 << network.max_prefixlen:
                address = type(network[0])(number)
                outside = not any(address in other for other in blocked)
                yield str(address), outside and (address.version == 4 or address in unicast)


@pytest.mark.parametrize(("address", "public"), sorted(set(neighbours())))
def test_addresses_next_to_blocked_range(address: str, public: bool) -> None:
    assert is_public(ip_address(address)) is public


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("1.1.1.1", True),
        ("223.255.255.255", True),
        ("2000::", True),
        ("2606:4700::1111", True),
        ("3ffe:ffff::1", True),
        ("1fff:ffff::1", False),
        ("4000::", False),
        ("::ffff:8.8.8.8", True),
        ("::ffff:10.0.0.1", False),
        ("::8.8.8.8", False),
        ("::ffff:0:8.8.8.8", False),
        ("64:ff9b::8.8.8.8", False),
        ("64:ff9b:1::808:808", False),
        ("2002:808:808::1", False),
        ("2001:0:808:808::1", False),
        ("2606:4700::1111%eth0", False),
    ],
)
def test_known_addresses_are_public_or_not(address: str, public: bool) -> None:
    assert is_public(ip_address(address)) is public


def test_blocked_ranges_match_test_data() -> None:
    listed = [ip_network(row["cidr"]) for row in CORPUS["blocked_ranges"] if "NOT" not in row["cidr"]]
    assert set(BLOCKED_IPV4) == {network for network in listed if isinstance(network, IPv4Network)}
    unicast = IPv6Network("2000::/3")
    inside = {n for n in listed if isinstance(n, IPv6Network) and n.subnet_of(unicast)}
    assert set(BLOCKED_IPV6) == inside
