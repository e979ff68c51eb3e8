"""The console uses at most half of the web threads. Users who are not logged in use one of them."""

import asyncio
import threading
from typing import Any

import pytest
from django.conf import settings
from django.http import HttpResponse

from config import concurrency
from config.asgi import AsgiApplication, ServiceRequest
from console.people import page_limits
from tests.config.asgi_messages import SentMessages, scope_of

THREADS = 4
SECONDS = 60
SESSION = f"{settings.SESSION_COOKIE_NAME}=abc".encode()
PAGE, LOGIN, OTHER = "/admin/payments/payment/", "/admin/login/", "/v1/balance"


class Slow:
    """An application whose console pages, or others, wait until the test lets them answer."""

    def __init__(self, prefix: str = "/admin/") -> None:
        self.prefix = prefix
        self.may_end = threading.Event()
        self.begun: list[str] = []

    def __call__(self, request: ServiceRequest) -> HttpResponse:
        if request.path.startswith(self.prefix):
            self.begun.append(request.path)
            assert self.may_end.wait(SECONDS)
        return HttpResponse()


async def ask(
    server: AsgiApplication, path: str, cookie: bytes = SESSION, key: bytes = b""
) -> tuple[int, dict[bytes, bytes]]:
    status, headers, _body = await answer_to(server, path, cookie, key=key)
    return status, headers


async def answer_to(
    server: AsgiApplication, path: str, cookie: bytes = SESSION, language: bytes = b"en", key: bytes = b""
) -> tuple[int, dict[bytes, bytes], bytes]:
    sent = SentMessages()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = scope_of("GET", path, cookie=cookie, accept_language=language, authorization=key)
    await server(scope, receive, sent)
    return int(sent[0]["status"]), dict(sent[0]["headers"]), bytes(sent[1]["body"])


async def begins(application: Slow, count: int) -> None:
    async with asyncio.timeout(SECONDS):
        while len(application.begun) < count:
            await asyncio.sleep(0.001)


def test_slow_console_pages_leave_half_of_the_threads() -> None:
    async def run() -> None:
        application = Slow()
        server = AsgiApplication(application, THREADS)
        tasks = [asyncio.create_task(ask(server, PAGE)) for _ in range(2 * THREADS)]
        await begins(application, THREADS // 2)
        for _ in range(20):
            assert (await ask(server, OTHER))[0] == 200
        assert len(application.begun) == THREADS // 2
        application.may_end.set()
        assert [status for status, _ in await asyncio.gather(*tasks)] == [200] * len(tasks)

    asyncio.run(run())


@pytest.mark.parametrize(("path", "cookie"), [(LOGIN, SESSION), (PAGE, b"other=1")])
def test_anonymous_console_requests_use_one_thread(path: str, cookie: bytes) -> None:
    async def run() -> None:
        application = Slow()
        server = AsgiApplication(application, THREADS)
        strangers = [asyncio.create_task(ask(server, path, cookie)) for _ in range(THREADS)]
        await begins(application, 1)
        staff = asyncio.create_task(ask(server, PAGE + "1/"))
        await begins(application, 2)
        assert sorted(application.begun) == sorted([path, PAGE + "1/"])
        application.may_end.set()
        await asyncio.gather(staff, *strangers)

    asyncio.run(run())


def test_key_that_reads_slow_lists_leaves_half_of_the_threads_to_others() -> None:
    async def run() -> None:
        application = Slow("/v1/payments")
        server = AsgiApplication(application, THREADS)
        one_key = [b"Bearer one", b"bearer one"] * THREADS
        lists = [asyncio.create_task(ask(server, "/v1/payments", key=key)) for key in one_key]
        await begins(application, THREADS // 2)
        for _ in range(20):
            assert (await ask(server, OTHER, key=b"Bearer another"))[0] == 200
        assert len(application.begun) == THREADS // 2
        application.may_end.set()
        assert [status for status, _ in await asyncio.gather(*lists)] == [200] * len(lists)

    asyncio.run(run())


@pytest.mark.slow
def test_full_console_queue_is_503_with_retry_after() -> None:
    async def run() -> None:
        application = Slow()
        server = AsgiApplication(application, THREADS)
        tasks = [asyncio.create_task(ask(server, LOGIN)) for _ in range(1 + concurrency.MAX_WAITING)]
        await begins(application, 1)
        status, headers, page = await answer_to(server, LOGIN)
        assert (status, headers[b"retry-after"]) == (503, b"2")
        assert headers[b"x-request-id"].startswith(b"req_")
        assert headers[b"content-type"] == b"text/html; charset=utf-8"
        for text in (str(page_limits.TOO_MANY_AT_ONCE), "Thai QR Payments", ">Try again</a>"):
            assert text in page.decode()
        _status, _headers, thai = await answer_to(server, LOGIN, language=b"th")
        assert '<html lang="th"' in thai.decode()
        application.may_end.set()
        assert {status for status, _ in await asyncio.gather(*tasks)} == {200}

    asyncio.run(run())


def test_long_wait_for_console_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "WAIT_SECONDS", 0.01)

    async def run() -> None:
        application = Slow()
        server = AsgiApplication(application, THREADS)
        first = asyncio.create_task(ask(server, LOGIN))
        await begins(application, 1)
        assert (await ask(server, LOGIN))[0] == 503
        application.may_end.set()
        assert (await first)[0] == 200
        assert (await ask(server, LOGIN))[0] == 200

    asyncio.run(run())


def test_disconnected_console_client_frees_the_slot() -> None:
    async def run() -> None:
        application = Slow()
        server = AsgiApplication(application, THREADS)
        tasks = [asyncio.create_task(ask(server, PAGE)) for _ in range(THREADS // 2)]
        await begins(application, THREADS // 2)
        gone = asyncio.create_task(ask(server, PAGE))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        application.may_end.set()
        await asyncio.gather(*tasks)
        more = [ask(server, PAGE) for _ in range(THREADS)]
        assert [status for status, _ in await asyncio.gather(*more)] == [200] * THREADS

    asyncio.run(run())
