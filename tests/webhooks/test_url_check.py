from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

import pytest

from tests.webhooks.hostile_urls import (
    CORPUS,
    PUBLIC,
    PUBLIC6,
    answers_of,
    case_name,
    cases,
    resolve,
    resolving,
)
from webhooks.http import url_check
from webhooks.http.public_networks import BLOCKED_IPV4, BLOCKED_IPV6, is_public
from webhooks.http.url_check import RejectionReason, UrlPolicy, UrlRejected

STRICT = UrlPolicy()
LOOPBACK = UrlPolicy(allowed_networks=(ip_network("127.0.0.0/8"), ip_network("::1/128")), allow_http=True)


def accept(url: str, policy: UrlPolicy = STRICT, *answers: str) -> list[str]:
    target = url_check.parse_target(url, policy)
    return [str(address) for address in resolve(target, policy, resolving(" ".join(answers)))]


def refusal(url: str, policy: UrlPolicy = STRICT, *answers: str) -> RejectionReason:
    with pytest.raises(UrlRejected) as refused:
        accept(url, policy, *answers)
    assert str(refused.value) == str(UrlRejected(RejectionReason.DNS))
    return refused.value.reason


def test_hostile_urls_are_refused() -> None:
    for case in cases(expect=("reject_registration", "reject_connect")):
        with pytest.raises(UrlRejected):
            resolve(url_check.parse_target(case["url"], STRICT), STRICT, resolving(*answers_of(case)))


def test_allow_http_and_ports_without_allowed_networks_permit_no_hostile_url() -> None:
    for case in cases(expect=("reject_registration",)):
        policy = UrlPolicy(ports=frozenset({443, 8443}), allow_http=True)
        with pytest.raises(UrlRejected):
            resolve(url_check.parse_target(case["url"], policy), policy, resolving(*answers_of(case)))


@pytest.mark.parametrize("case", cases(expect=("accept",)), ids=case_name)
def test_ordinary_urls_are_accepted(case: dict[str, Any]) -> None:
    target = url_check.parse_target(case["url"], STRICT)
    assert resolve(target, STRICT, resolving(*answers_of(case))) == [ip_address(PUBLIC)]


@pytest.mark.parametrize("case", cases(expect=("no_header_injection", "reject_or_punycode")), ids=case_name)
def test_unusual_urls_are_normalized_to_ascii(case: dict[str, Any]) -> None:
    target = url_check.parse_target(case["url"], STRICT)
    assert target.url.isascii()
    assert not set("\r\n ") & set(target.url)


def test_rejection_reason_is_not_in_the_message() -> None:
    for url, reason in [
        ("", RejectionReason.SCHEME),
        ("http://hooks.example.test/", RejectionReason.SCHEME),
        ("https://@hooks.example.test/", RejectionReason.CREDENTIALS),
        ("https://u:p@hooks.example.test?a=b", RejectionReason.CREDENTIALS),
        ("https://hooks.example.test?mail=a@b.test", RejectionReason.AT_SIGN),
        ("https://my_hooks.example.test/", RejectionReason.HOST_CHARACTER),
        ("https://hooks.example.test/#", RejectionReason.MALFORMED),
        ("https://hooks.example.test/\u200b", RejectionReason.MALFORMED),
        ("https://hooks.example.test/\ud800", RejectionReason.MALFORMED),
        ("https://hooks.example.test/\\", RejectionReason.MALFORMED),
        ("https://hooks.example.test:8080/", RejectionReason.PORT),
        ("https://" + "a" * 64 + ".test/", RejectionReason.HOST),
        ("https://" + "a." * 125 + "test/", RejectionReason.HOST),
        ("https://-hooks.example.test/", RejectionReason.HOST),
        ("https://hooks-.example.test/", RejectionReason.HOST),
        ("https://hooks.example.0x7f/", RejectionReason.HOST),
        ("https://8.8.8.8./", RejectionReason.HOST),
        ("https://010.8.8.8/", RejectionReason.HOST),
        ("https://134744072/", RejectionReason.HOST),
        ("https://printer.local/", RejectionReason.HOST),
        ("https://[2606:4700::1111%eth0]/", RejectionReason.HOST),
        ("https://127\u30020\u30020\u30021/", RejectionReason.MALFORMED),
        ("https://10.0.0.1/", RejectionReason.ADDRESS),
    ]:
        assert refusal(url, STRICT, PUBLIC) is reason


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("https://Hooks.Example.test", "https://hooks.example.test/"),
        ("HTTPS://hooks.example.test:443/a?b=c@d", "https://hooks.example.test/a?b=c@d"),
        ("https://hooks.example.test:8443?x=1", "https://hooks.example.test:8443/?x=1"),
        ("https://hooks.example.test./a/../b", "https://hooks.example.test/b"),
        ("https://hooks.example.test//a", "https://hooks.example.test//a"),
        ("https://hooks.example.test:/", "https://hooks.example.test/"),
        ("https://hooks.example.test/ใบ?a=%e0", "https://hooks.example.test/%E0%B9%83%E0%B8%9A?a=%E0"),
        ("https://bücher.example.test/", "https://xn--bcher-kva.example.test/"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://[2606:4700:0::1111]:8443/", "https://[2606:4700::1111]:8443/"),
        ("https://[::ffff:8.8.8.8]/", "https://[::ffff:808:808]/"),
    ],
)
def test_url_is_normalized_and_normalization_is_idempotent(url: str, normal: str) -> None:
    target = url_check.parse_target(url, STRICT)
    assert target.url == normal
    assert url_check.parse_target(normal, STRICT) == target


def test_url_longer_than_2048_characters_after_encoding_is_refused() -> None:
    start = "https://hooks.example.test/"
    url_check.parse_target(start + "a" * (2048 - len(start)), STRICT)
    assert refusal(start + "a" * (2049 - len(start)), STRICT) is RejectionReason.MALFORMED
    assert refusal(start + "ก" * 1000, STRICT) is RejectionReason.MALFORMED


def test_host_name_with_an_internal_address_is_refused() -> None:
    assert refusal("https://hooks.example.test/", STRICT, PUBLIC, "10.0.0.1") is RejectionReason.ADDRESS


def test_public_address_outside_of_the_allowed_networks_is_refused_for_its_port_or_scheme() -> None:
    assert refusal("https://hooks.example.test:8080/", LOOPBACK, PUBLIC) is RejectionReason.PORT
    assert refusal("http://hooks.example.test/", LOOPBACK, PUBLIC) is RejectionReason.SCHEME


def test_resolved_addresses_are_unique_and_ordered() -> None:
    found = accept("https://hooks.example.test/", STRICT, PUBLIC6, PUBLIC, f"::ffff:{PUBLIC}", PUBLIC6)
    assert found == [PUBLIC6, PUBLIC]


def test_ip_address_in_a_url_makes_no_dns_lookup() -> None:
    assert accept("https://8.8.8.8/") == ["8.8.8.8"]


@pytest.mark.parametrize(
    ("url", "answers"),
    [
        ("http://127.0.0.1:9000/hook", []),
        ("http://[::1]:9000/hook", []),
        ("https://[::ffff:127.0.0.1]:22/hook", []),
        ("http://localhost:9000/hook", ["127.0.0.1", "::1"]),
        ("http://receiver:80/hook", ["127.0.0.1"]),
        ("http://hooks.example.test:9000/hook", ["127.0.0.1"]),
        ("https://hooks.example.test/hook", [PUBLIC, "127.0.0.1"]),
    ],
)
def test_allowed_networks_permit_any_port_and_http(url: str, answers: list[str]) -> None:
    assert accept(url, LOOPBACK, *answers)


@pytest.mark.parametrize(
    ("url", "answers"),
    [
        ("http://hooks.example.test/", [PUBLIC]),
        ("http://hooks.example.test/", [PUBLIC, "127.0.0.1"]),
        ("https://hooks.example.test:9000/", [PUBLIC]),
        ("https://receiver/", [PUBLIC]),
        ("https://sub.localhost/", [PUBLIC]),
        ("https://hooks.example.test/", ["10.0.0.1"]),
        ("http://8.8.8.8/", []),
        ("https://8.8.8.8:9000/", []),
        ("http://127.0.0.1:0/", []),
        ("https://[::1%lo]/", []),
    ],
)
def test_address_outside_allowed_networks_is_refused(url: str, answers: list[str]) -> None:
    assert refusal(url, LOOPBACK, *answers)


def test_http_in_allowed_networks_is_refused_without_allow_http() -> None:
    policy = UrlPolicy(allowed_networks=LOOPBACK.allowed_networks)
    assert refusal("http://127.0.0.1/", policy) is RejectionReason.SCHEME
    assert accept("https://127.0.0.1:9000/", policy)


# --- public addresses


def test_addresses_of_blocked_ranges_are_not_public() -> None:
    for row in CORPUS["blocked_ranges"]:
        network = ip_network(row["cidr"].removeprefix("NOT "))
        for edge in (network[0], network[1], network[-2], network[-1]):
            assert is_public(edge) is row["cidr"].startswith("NOT")


def neighbours() -> Iterator[tuple[str, bool]]:
    """The addresses before and after each blocked range, and whether they are public."""
    blocked = [ip_network(row["cidr"]) for row in CORPUS["blocked_ranges"] if "NOT" not in row["cidr"]]
    unicast = ip_network("2000::/3")
    for network in blocked:
        for number in (int(network[0]) - 1, int(network[-1]) + 1):
            if 0 <= number < 1 << network.max_prefixlen:
                address = type(network[0])(number)
                outside = not any(address in other for other in blocked)
                yield str(address), outside and (address.version == 4 or address in unicast)


def test_addresses_next_to_a_blocked_range_are_classified_correctly() -> None:
    for address, public in sorted(set(neighbours())):
        assert is_public(ip_address(address)) is public


def test_special_and_public_addresses_are_classified_correctly() -> None:
    for address, public in [
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
    ]:
        assert is_public(ip_address(address)) is public


def test_blocked_ranges_match_test_data() -> None:
    listed = [ip_network(row["cidr"]) for row in CORPUS["blocked_ranges"] if "NOT" not in row["cidr"]]
    assert set(BLOCKED_IPV4) == {network for network in listed if isinstance(network, IPv4Network)}
    unicast = IPv6Network("2000::/3")
    inside = {n for n in listed if isinstance(n, IPv6Network) and n.subnet_of(unicast)}
    assert set(BLOCKED_IPV6) == inside
