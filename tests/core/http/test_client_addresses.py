"""The address of a client: the peer of the connection, or the address that our proxies report."""

import pytest
from django.test import RequestFactory
from pytest_django import Settings

from core.http import client_addresses


@pytest.mark.parametrize(
    ("hops", "remote", "forwarded", "address"),
    [
        (0, "203.0.113.7", "198.51.100.1", "203.0.113.7"),
        (1, "10.0.0.1", "203.0.113.7", "203.0.113.7"),
        (1, "10.0.0.1", "1.1.1.1, 203.0.113.7", "203.0.113.7"),
        (2, "10.0.0.1", "1.1.1.1, 203.0.113.7, 10.0.0.2", "203.0.113.7"),
        (2, "10.0.0.1", "203.0.113.7", ""),
        (1, "10.0.0.1", "", ""),
        (1, "10.0.0.1", "somebody\n", ""),
        (0, "::ffff:203.0.113.7", "", "203.0.113.7"),
        (0, "2001:DB8:0::1", "", "2001:db8::1"),
        (0, "fe80::1%" + "x" * 1000, "", "fe80::1"),
        (0, "unix:", "", ""),
    ],
)
def test_client_address_is_read_from_x_forwarded_for_by_proxy_hops(
    settings: Settings, hops: int, remote: str, forwarded: str, address: str
) -> None:
    settings.PROXY_HOPS = hops
    request = RequestFactory().get("/", REMOTE_ADDR=remote, HTTP_X_FORWARDED_FOR=forwarded)
    assert client_addresses.address_of(request) == address


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.7", "203.0.113.0/24"),
        ("2001:db8:1:2::3", "2001:db8:1::/48"),
        ("::ffff:203.0.113.7", "203.0.113.0/24"),
        ("", ""),
        ("unknown", ""),
    ],
)
def test_network_of_an_address_has_the_given_prefix_length(address: str, network: str) -> None:
    assert client_addresses.network_of(address, ipv4_bits=24, ipv6_bits=48) == network
