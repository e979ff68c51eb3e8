"""The corpus of hostile URLs, with the answers of name servers to them."""

import json
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from webhooks.http import client, event_loop, url_check
from webhooks.http.public_networks import Address
from webhooks.http.url_check import Target, UrlPolicy

CORPUS = json.loads((Path(__file__).parent.parent / "data" / "ssrf-urls.json").read_text())
PUBLIC, PUBLIC6 = "8.8.4.4", "2606:4700::1111"


def cases(
    *, expect: tuple[str, ...] = (), category: tuple[str, ...] = (), ids: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Select the cases with one of these expectations, categories or ids. At least one must match."""
    chosen = [
        case
        for case in CORPUS["cases"]
        if case["expect"] in expect or case["category"] in category or case["id"] in ids
    ]
    assert chosen
    return chosen


def case_name(case: dict[str, Any]) -> str:
    """The test id of a case."""
    return f"{case['id']} {case['why']}"


def resolving(*answers: str) -> Any:
    """Return a resolver that gives these answers in order and repeats the last one. "" is an unknown name."""
    remaining = list(answers)

    def resolver(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        answer = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        if not answer:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(0, 0, 0, "", (address, port)) for address in answer.split()]

    return resolver


def resolve(target: Target, policy: UrlPolicy, *resolver: Any, **options: Any) -> list[Address]:
    """Look up the addresses of a target, and wait for the result."""
    return event_loop.run(url_check.resolve(target, policy, *resolver, **options))


def answers_of(case: dict[str, Any]) -> list[str]:
    """The answers to the look-ups of this case; by default a public address."""
    stub = case.get("stub_dns", [PUBLIC])
    rounds = [stub] if isinstance(stub, list) else stub.get("sequence", [stub.get("a", [])])
    return [" ".join(answer).replace("$PUBLIC6", PUBLIC6).replace("$PUBLIC", PUBLIC) for answer in rounds]


def resolver_of_cases(of: list[dict[str, Any]]) -> Any:
    """A resolver for the names in these cases. Any other name has a public address."""
    known = {case["url"].split("/")[2]: resolving(*answers_of(case)) for case in of if "stub_dns" in case}
    public = resolving(PUBLIC)

    def resolver(host: str, port: int, **options: Any) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = known.get(host, public)(host, port, **options)
        return found

    return resolver


def set_default_resolver(
    resolver: Any, monkeypatch: pytest.MonkeyPatch, *, tls: ssl.SSLContext | None = None
) -> None:
    """Replace the default resolver and the default TLS settings of posts."""
    defaults = client.post.__kwdefaults__ or {}
    monkeypatch.setattr(client.post, "__kwdefaults__", defaults | {"resolver": resolver, "tls": tls})
    monkeypatch.setattr(url_check.resolve, "__defaults__", (resolver, url_check.LOOKUP_SECONDS))
