"""Slow requests hold few threads of a web process: uploads have few places, card payments their own lane."""

import asyncio
import itertools
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from django.conf import settings
from django.urls import resolve

from config import lanes
from config.bridge import Bridge, Environ, StartResponse
from config.upload_gate import MOST_WAITING
from core import uploads
from payments.views import PaymentViewSet

THREADS = 4
UPLOAD, OTHER, CARDS = "/admin/receipts/statement/import/", "/v1/qr-codes", "/v1/payments"
SECONDS = 60


class Slow:
    """An application that answers uploads and card payments when it is told to, and all else at once."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.begun = threading.Semaphore(0)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] in (UPLOAD, CARDS):
            self.begun.release()
            assert self.may_end.wait(SECONDS)
        start_response("200 OK", [])
        return [b""]

    async def begins(self, count: int) -> None:
        for _ in range(count):
            assert await asyncio.to_thread(self.begun.acquire, timeout=SECONDS)

    def has_begun_another(self) -> bool:
        return self.begun.acquire(blocking=False)


numbers = itertools.count()


def session() -> str:
    return f"{next(numbers):032d}"


def user_of(environ: Mapping[str, Any]) -> str:
    """Each session is of a user of its own."""
    return str(environ["HTTP_COOKIE"])


def scope(path: str, cookie: str) -> dict[str, Any]:
    return {
        "method": "POST",
        "raw_path": path.encode(),
        "query_string": b"",
        "server": ("127.0.0.1", 80),
        "http_version": "1.1",
        "client": ("127.0.0.1", 1),
        "scheme": "http",
        "headers": [
            (b"content-length", b"1"),
            (b"cookie", f"{settings.SESSION_COOKIE_NAME}={cookie}".encode()),
        ],
    }


async def ask(
    bridge: Bridge, path: str, *, hangs_up: bool = False, drips: bool = False, cookie: str | None = None
) -> int:
    """The status of the answer. hangs_up: before the end of its body. drips: bytes, slowly, without end."""
    told: list[Any] = []

    async def receive() -> dict[str, Any]:
        if hangs_up:
            return {"type": "http.disconnect"}
        if drips:
            await asyncio.sleep(0.005)
            return {"type": "http.request", "body": b"x", "more_body": True}
        return {"type": "http.request", "body": b"x", "more_body": False}

    async def send(message: Any) -> None:
        told.append(message)

    await bridge(scope(path, cookie or session()), receive, send)
    return int(told[0]["status"])


def test_slow_uploads_leave_threads_for_all_else() -> None:
    async def run() -> None:
        application = Slow()
        bridge = Bridge(application, THREADS, uploader_of=user_of)
        asked = [asyncio.create_task(ask(bridge, UPLOAD)) for _ in range(2 * THREADS)]
        await application.begins(uploads.AT_ONCE)
        assert await asyncio.wait_for(ask(bridge, OTHER), SECONDS) == 200
        assert not application.has_begun_another()
        application.may_end.set()
        assert await asyncio.wait_for(asyncio.gather(*asked), SECONDS) == [200] * len(asked)

    asyncio.run(run())


def test_an_upload_whose_sender_hangs_up_keeps_its_place_until_it_ends() -> None:
    async def run() -> None:
        application = Slow()
        bridge = Bridge(application, THREADS, uploader_of=user_of)
        asked = [asyncio.create_task(ask(bridge, UPLOAD)) for _ in range(uploads.AT_ONCE)]
        await application.begins(uploads.AT_ONCE)
        for each in asked:
            each.cancel()
        await asyncio.wait(asked)
        late = asyncio.create_task(ask(bridge, UPLOAD))
        assert await asyncio.wait_for(ask(bridge, OTHER), SECONDS) == 200
        assert not application.has_begun_another()
        application.may_end.set()
        assert await asyncio.wait_for(late, SECONDS) == 200

    asyncio.run(run())


def test_an_upload_that_breaks_off_gives_its_place_back() -> None:
    async def run() -> None:
        bridge = Bridge(Slow(), THREADS, uploader_of=user_of)
        for _ in range(uploads.AT_ONCE + 1):
            assert await asyncio.wait_for(ask(bridge, UPLOAD, hangs_up=True), SECONDS) == 400

    asyncio.run(run())


def test_upload_without_permission_gets_no_place_and_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a small body like any other: strangers who drip cannot keep staff from uploading."""
    monkeypatch.setattr("config.bridge.BODY_SECONDS", 0.5)

    async def run() -> None:
        strangers = [session() for _ in range(20)]

        def staff_only(environ: Mapping[str, Any]) -> str | None:
            cookie = user_of(environ).partition("=")[2]
            return None if cookie in strangers else cookie

        application = Slow()
        application.may_end.set()
        bridge = Bridge(application, THREADS, uploader_of=staff_only)
        dripping = [asyncio.create_task(ask(bridge, UPLOAD, drips=True, cookie=each)) for each in strangers]
        while not dripping[0].done():
            assert await asyncio.wait_for(ask(bridge, UPLOAD), SECONDS) in (200, 503)
            assert bridge.uploads._value == uploads.AT_ONCE
        assert set(await asyncio.gather(*dripping)) <= {408, 503}

    asyncio.run(run())


def test_malformed_session_cookie_is_not_looked_up() -> None:
    asked: list[Any] = []

    async def run() -> None:
        application = Slow()
        application.may_end.set()
        bridge = Bridge(application, THREADS, uploader_of=asked.append)
        for cookie in ("abc", "x" * 31, "x" * 33, "X" * 32, "'" * 32, ""):
            await ask(bridge, UPLOAD, cookie=cookie or "-")
        await ask(bridge, OTHER, cookie="x" * 32)

    asyncio.run(run())
    assert asked == []


def test_look_ups_of_sessions_run_one_at_a_time_and_few_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end, running = threading.Event(), threading.Semaphore(0)

    def slowly(environ: Mapping[str, Any]) -> None:
        running.release()
        assert may_end.wait(SECONDS)

    async def run() -> None:
        application = Slow()
        application.may_end.set()
        bridge = Bridge(application, THREADS, uploader_of=slowly)
        asked = [asyncio.create_task(ask(bridge, UPLOAD)) for _ in range(MOST_WAITING + 5)]
        assert await asyncio.to_thread(running.acquire, timeout=SECONDS)
        done, _waiting = await asyncio.wait(asked, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
        assert {each.result() for each in done} == {503}
        assert not running.acquire(blocking=False)
        assert await asyncio.wait_for(ask(bridge, OTHER), SECONDS) == 200
        may_end.set()
        assert sorted(await asyncio.gather(*asked)) == [200] * MOST_WAITING + [503] * 5

    asyncio.run(run())


def test_look_up_of_a_session_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("config.upload_gate.WAIT_SECONDS", 0.05)
    may_end = threading.Event()

    def slowly(environ: Mapping[str, Any]) -> None:
        may_end.wait(SECONDS)

    async def run() -> None:
        bridge = Bridge(Slow(), THREADS, uploader_of=slowly)
        assert await asyncio.wait_for(ask(bridge, UPLOAD), SECONDS) == 503
        may_end.set()

    asyncio.run(run())


def test_one_user_uploads_one_file_at_a_time() -> None:
    async def run() -> None:
        application = Slow()
        bridge = Bridge(application, THREADS, uploader_of=user_of)
        greedy = "0" * 31 + "a"
        asked = [asyncio.create_task(ask(bridge, UPLOAD, cookie=greedy)) for _ in range(5)]
        await application.begins(1)
        assert await asyncio.wait_for(ask(bridge, OTHER), SECONDS) == 200
        assert not application.has_begun_another()
        other = asyncio.create_task(ask(bridge, UPLOAD))
        await application.begins(1)
        application.may_end.set()
        assert await asyncio.wait_for(asyncio.gather(other, *asked), SECONDS) == [200] * 6
        assert len(bridge.uploads_of_one) == 0

    asyncio.run(run())


def test_upload_that_is_too_slow_ends_before_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "GRACE_SECONDS", 0.1)

    async def run() -> None:
        bridge = Bridge(Slow(), THREADS, uploader_of=user_of)
        assert await asyncio.wait_for(ask(bridge, UPLOAD, drips=True), SECONDS) == 408
        assert bridge.uploads._value == uploads.AT_ONCE

    asyncio.run(run())


def test_upload_that_is_fast_enough_still_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "BYTES_PER_SECOND", 1)
    monkeypatch.setattr(uploads, "SECONDS", 0.3)

    async def run() -> None:
        bridge = Bridge(Slow(), THREADS, uploader_of=user_of)
        assert await asyncio.wait_for(ask(bridge, UPLOAD, drips=True), SECONDS) == 408
        assert bridge.uploads._value == uploads.AT_ONCE

    asyncio.run(run())


def test_card_payments_that_wait_hold_none_of_the_other_threads() -> None:
    async def run() -> None:
        application = Slow()
        bridge = Bridge(application, THREADS, card_threads=2)
        asked = [asyncio.create_task(ask(bridge, CARDS)) for _ in range(2 * THREADS)]
        await application.begins(2)
        assert await asyncio.wait_for(ask(bridge, OTHER), SECONDS) == 200
        assert not application.has_begun_another()
        application.may_end.set()
        assert await asyncio.wait_for(asyncio.gather(*asked), SECONDS) == [200] * len(asked)

    asyncio.run(run())


@pytest.mark.parametrize("path", sorted(lanes.CARD_PATHS))
def test_paths_of_the_card_lane_create_payments(path: str) -> None:
    """A path that is renamed must be renamed there too."""
    view: Any = resolve(path).func
    assert view.cls is PaymentViewSet
    assert lanes.of({"REQUEST_METHOD": "POST", "PATH_INFO": path}) == lanes.CARDS
    assert lanes.of({"REQUEST_METHOD": "GET", "PATH_INFO": path}) == lanes.WEB
