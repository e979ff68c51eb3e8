import asyncio
import gc
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import pytest

from tests.webhooks.hostile_urls import PUBLIC, resolve, resolving
from webhooks.http import event_loop, url_check
from webhooks.http.url_check import RejectionReason, UrlPolicy, UrlRejected

STRICT = UrlPolicy()


@pytest.mark.parametrize("resolver", [resolving(""), lambda *_, **__: []], ids=["unknown", "empty"])
def test_host_name_without_addresses_is_dns_error(resolver: Any) -> None:
    target = url_check.parse_target("https://hooks.example.test/", STRICT)
    with pytest.raises(UrlRejected) as refused:
        resolve(target, STRICT, resolver)
    assert refused.value.reason is RejectionReason.DNS


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


@pytest.mark.slow
def test_hanging_dns_lookup_costs_timeout_and_one_thread() -> None:
    calls: list[str] = []
    target = url_check.parse_target("https://slow.test/hook", STRICT)
    with dead_resolver(calls) as resolver:
        for _ in range(3):
            with pytest.raises(UrlRejected) as refused:
                resolve(target, STRICT, resolver, timeout=0.02)
            assert refused.value.reason is RejectionReason.DNS
    assert calls == ["slow.test"]


def test_number_of_slow_dns_lookups_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhooks.http.dns.MAX_LOOKUPS", 1)
    calls: list[str] = []
    with dead_resolver(calls) as resolver:
        for name in ("first.test", "second.test"):
            target = url_check.parse_target(f"https://{name}/", STRICT)
            with pytest.raises(UrlRejected):
                resolve(target, STRICT, resolver, timeout=0.02)
    assert calls == ["first.test"]


def test_dns_lookup_is_repeated_after_thread_shortage(monkeypatch: pytest.MonkeyPatch) -> None:
    target, resolver = url_check.parse_target("https://shop.test/", STRICT), resolving(PUBLIC)

    assert resolve(target, STRICT, resolving(PUBLIC))  # the event loop has its thread

    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none_left)
        with pytest.raises(UrlRejected):
            resolve(target, STRICT, resolver)
    assert [str(each) for each in resolve(target, STRICT, resolver)] == [PUBLIC]


def test_dns_lookup_that_fails_after_its_post_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    target, released = url_check.parse_target("https://late.test/", STRICT), threading.Event()
    asked: SimpleQueue[threading.Thread] = SimpleQueue()

    def resolver(*_: Any, **__: Any) -> Any:
        asked.put(threading.current_thread())
        released.wait()
        raise socket.gaierror(socket.EAI_AGAIN, "late")

    with pytest.raises(UrlRejected):
        resolve(target, STRICT, resolver, timeout=0.02)
    released.set()
    asked.get(timeout=60).join()
    for _ in range(2):
        event_loop.run(asyncio.sleep(0))  # the loop gets the result
    gc.collect()
    assert [each for each in caplog.records if each.name == "asyncio"] == []


def test_event_loop_does_not_wait_for_the_start_of_dns_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    start, starters = threading.Thread.start, []

    def watched(thread: threading.Thread) -> None:
        if thread.name == "lookup":
            starters.append(threading.current_thread())
        start(thread)

    async def own_thread() -> threading.Thread:
        return threading.current_thread()

    monkeypatch.setattr(threading.Thread, "start", watched)
    assert resolve(url_check.parse_target("https://shop.test/", STRICT), STRICT, resolving(PUBLIC))
    assert len(starters) == 1 and event_loop.run(own_thread()) not in starters
