import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.webhooks.corpus import PUBLIC, resolving
from webhooks import targets
from webhooks.targets import BadTarget, Policy, Reason

STRICT = Policy()


@pytest.mark.parametrize("resolver", [resolving(""), lambda *_, **__: []], ids=["unknown", "empty"])
def test_a_name_without_addresses_is_a_failure_of_dns(resolver: Any) -> None:
    target = targets.parse_target("https://hooks.example.test/", STRICT)
    with pytest.raises(BadTarget) as refused:
        targets.resolve(target, STRICT, resolver)
    assert refused.value.reason is Reason.DNS


@contextmanager
def dead_resolver(calls: list[str]) -> Iterator[Any]:
    called, released = threading.Event(), threading.Event()
    waiting: list[threading.Thread] = []

    def resolver(host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        calls.append(host)
        waiting.append(threading.current_thread())
        called.set()
        released.wait()
        return [(0, 0, 0, "", (PUBLIC, port))]

    yield resolver
    assert called.wait(60)
    released.set()
    for thread in waiting:
        thread.join()


def test_a_resolver_that_never_answers_costs_the_time_limit_and_one_thread() -> None:
    calls: list[str] = []
    target = targets.parse_target("https://slow.test/hook", STRICT)
    with dead_resolver(calls) as resolver:
        for _ in range(3):
            with pytest.raises(BadTarget) as refused:
                targets.resolve(target, STRICT, resolver, timeout=0.02)
            assert refused.value.reason is Reason.DNS
    assert calls == ["slow.test"]


def test_a_flood_of_slow_names_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhooks.lookups.MOST_AT_ONCE", 1)
    calls: list[str] = []
    with dead_resolver(calls) as resolver:
        for name in ("first.test", "second.test"):
            target = targets.parse_target(f"https://{name}/", STRICT)
            with pytest.raises(BadTarget):
                targets.resolve(target, STRICT, resolver, timeout=0.02)
    assert calls == ["first.test"]


def test_a_name_that_got_no_thread_is_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    target, resolver = targets.parse_target("https://shop.test/", STRICT), resolving(PUBLIC)

    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none_left)
        with pytest.raises(BadTarget):
            targets.resolve(target, STRICT, resolver)
    assert [str(each) for each in targets.resolve(target, STRICT, resolver)] == [PUBLIC]
