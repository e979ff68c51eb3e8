from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from tests.webhooks.corpus import PUBLIC, PUBLIC6, answers_of, cases, name_of, resolving
from webhooks import targets
from webhooks.targets import BadTarget, Policy, Reason

STRICT = Policy()
LOOPBACK = Policy(allowed_networks=(ip_network("127.0.0.0/8"), ip_network("::1/128")), allow_http=True)


def accept(url: str, policy: Policy = STRICT, *answers: str) -> list[str]:
    target = targets.parse_target(url, policy)
    return [str(address) for address in targets.resolve(target, policy, resolving(" ".join(answers)))]


def refusal(url: str, policy: Policy = STRICT, *answers: str) -> Reason:
    with pytest.raises(BadTarget) as refused:
        accept(url, policy, *answers)
    assert str(refused.value) == str(BadTarget(Reason.DNS))
    return refused.value.reason


@pytest.mark.parametrize("case", cases(expect=("reject_registration", "reject_connect")), ids=name_of)
def test_hostile_urls_are_refused(case: dict[str, Any]) -> None:
    with pytest.raises(BadTarget):
        targets.resolve(targets.parse_target(case["url"], STRICT), STRICT, resolving(*answers_of(case)))


@pytest.mark.parametrize("case", cases(expect=("reject_registration",)), ids=name_of)
def test_allowing_http_or_ports_alone_opens_nothing(case: dict[str, Any]) -> None:
    policy = Policy(ports=frozenset({443, 8443}), allow_http=True)
    with pytest.raises(BadTarget):
        targets.resolve(targets.parse_target(case["url"], policy), policy, resolving(*answers_of(case)))


@pytest.mark.parametrize("case", cases(expect=("accept",)), ids=name_of)
def test_ordinary_urls_are_accepted(case: dict[str, Any]) -> None:
    target = targets.parse_target(case["url"], STRICT)
    assert targets.resolve(target, STRICT, resolving(*answers_of(case))) == [ip_address(PUBLIC)]


@pytest.mark.parametrize("case", cases(expect=("no_header_injection", "reject_or_punycode")), ids=name_of)
def test_doubtful_urls_are_sent_as_plain_ascii(case: dict[str, Any]) -> None:
    target = targets.parse_target(case["url"], STRICT)
    assert target.url.isascii()
    assert not set("\r\n ") & set(target.url)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", Reason.SCHEME),
        ("http://hooks.example.test/", Reason.SCHEME),
        ("https://@hooks.example.test/", Reason.CREDENTIALS),
        ("https://hooks.example.test/#", Reason.MALFORMED),
        ("https://hooks.example.test/\u200b", Reason.MALFORMED),
        ("https://hooks.example.test/\ud800", Reason.MALFORMED),
        ("https://hooks.example.test/\\", Reason.MALFORMED),
        ("https://hooks.example.test:8080/", Reason.PORT),
        ("https://" + "a" * 64 + ".test/", Reason.HOST),
        ("https://" + "a." * 125 + "test/", Reason.HOST),
        ("https://-hooks.example.test/", Reason.HOST),
        ("https://hooks-.example.test/", Reason.HOST),
        ("https://hooks.example.0x7f/", Reason.HOST),
        ("https://8.8.8.8./", Reason.HOST),
        ("https://010.8.8.8/", Reason.HOST),
        ("https://134744072/", Reason.HOST),
        ("https://printer.local/", Reason.HOST),
        ("https://[2606:4700::1111%eth0]/", Reason.HOST),
        ("https://127\u30020\u30020\u30021/", Reason.MALFORMED),
        ("https://10.0.0.1/", Reason.ADDRESS),
    ],
)
def test_each_refusal_keeps_its_reason_to_itself(url: str, reason: Reason) -> None:
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
def test_a_url_has_one_normal_form_and_keeps_it(url: str, normal: str) -> None:
    target = targets.parse_target(url, STRICT)
    assert target.url == normal
    assert targets.parse_target(normal, STRICT) == target


def test_the_longest_url_has_2048_characters_before_and_after_encoding() -> None:
    start = "https://hooks.example.test/"
    targets.parse_target(start + "a" * (2048 - len(start)), STRICT)
    assert refusal(start + "a" * (2049 - len(start)), STRICT) is Reason.MALFORMED
    assert refusal(start + "ก" * 1000, STRICT) is Reason.MALFORMED


def test_one_bad_address_refuses_the_whole_name() -> None:
    assert refusal("https://hooks.example.test/", STRICT, PUBLIC, "10.0.0.1") is Reason.ADDRESS


def test_good_addresses_come_once_each_in_the_resolvers_order() -> None:
    found = accept("https://hooks.example.test/", STRICT, PUBLIC6, PUBLIC, f"::ffff:{PUBLIC}", PUBLIC6)
    assert found == [PUBLIC6, PUBLIC]


def test_an_address_in_the_url_is_not_looked_up() -> None:
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
def test_in_allowed_networks_any_port_and_http_go(url: str, answers: list[str]) -> None:
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
def test_allowed_networks_open_nothing_but_themselves(url: str, answers: list[str]) -> None:
    assert refusal(url, LOOPBACK, *answers)


def test_http_stays_refused_in_allowed_networks_unless_it_is_allowed() -> None:
    policy = Policy(allowed_networks=LOOPBACK.allowed_networks)
    assert refusal("http://127.0.0.1/", policy) is Reason.SCHEME
    assert accept("https://127.0.0.1:9000/", policy)
