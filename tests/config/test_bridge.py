"""Slow requests hold few threads of a web process: uploads have few places, card payments their own lane."""

import asyncio
import threading
from collections.abc import Iterable
from typing import Any

import pytest
from django.urls import resolve

from config import lanes
from config.bridge import Bridge, Environ, StartResponse
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


def scope(path: str) -> dict[str, Any]:
    return {
        "method": "POST",
        "raw_path": path.encode(),
        "query_string": b"",
        "server": ("127.0.0.1", 80),
        "http_version": "1.1",
        "client": ("127.0.0.1", 1),
        "scheme": "http",
        "headers": [(b"content-length", b"1"), (b"cookie", b"sessionid=abc")],
    }


async def ask(bridge: Bridge, path: str, *, hangs_up: bool = False) -> int:
    """The status of the answer. hangs_up: before the end of its body."""
    told: list[Any] = []

    async def receive() -> dict[str, Any]:
        if hangs_up:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": b"x", "more_body": False}

    async def send(message: Any) -> None:
        told.append(message)

    await bridge(scope(path), receive, send)
    return int(told[0]["status"])


def test_slow_uploads_leave_threads_for_all_else() -> None:
    async def run() -> None:
        application = Slow()
        bridge = Bridge(application, THREADS)
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
        bridge = Bridge(application, THREADS)
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
        bridge = Bridge(Slow(), THREADS)
        for _ in range(uploads.AT_ONCE + 1):
            assert await asyncio.wait_for(ask(bridge, UPLOAD, hangs_up=True), SECONDS) == 400

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
