"""Slow requests hold few threads of a web process: uploads and card payments have separate slots."""

import asyncio
import itertools
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.urls import resolve

from config import concurrency
from config.asgi import AsgiApplication, ServiceRequest
from config.concurrency import MAX_WAITING, OverloadedError
from config.upload_authorization import FINDERS
from core.http import uploads
from core.http.uploads import UploadKind
from merchants.errors import AuthenticationFailed
from payments.views import PaymentViewSet
from tests.config.asgi_messages import SentMessages, scope_of
from tests.stack import wait_until

THREADS = 4
UPLOAD, OTHER, CARDS = "/admin/reconciliation/statement/import/", "/v1/qr-codes", "/v1/payments"
SECONDS = 60
AT_ONCE = uploads.MAX_CONCURRENT[UploadKind.STAFF]
CLAIM = "/claim/clt_" + 32 * "0"


class Slow:
    """An application whose uploads and card payments wait for the test; others answer at once."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.begun = threading.Semaphore(0)

    def __call__(self, request: ServiceRequest) -> HttpResponse:
        if request.path in (UPLOAD, CARDS, "/v1/slips") or request.path.startswith("/claim/"):
            self.begun.release()
            assert self.may_end.wait(SECONDS)
        return HttpResponse()

    async def begins(self, count: int) -> None:
        for _ in range(count):
            assert await asyncio.to_thread(self.begun.acquire, timeout=SECONDS)

    def has_begun_another(self) -> bool:
        return self.begun.acquire(blocking=False)


numbers = itertools.count()


def session() -> str:
    return f"{next(numbers):032d}"


def user_of(meta: Mapping[str, Any]) -> str:
    """Each session is of a user of its own."""
    return str(meta["HTTP_COOKIE"])


async def ask(
    server: AsgiApplication,
    path: str,
    *,
    hangs_up: bool = False,
    drips: bool = False,
    cookie: str | None = None,
) -> int:
    """The status of the answer. hangs_up: before the end of its body. drips: bytes, slowly, without end."""
    sent = SentMessages()

    async def receive() -> dict[str, Any]:
        if hangs_up:
            return {"type": "http.disconnect"}
        if drips:
            await asyncio.sleep(0.005)
            return {"type": "http.request", "body": b"x", "more_body": True}
        return {"type": "http.request", "body": b"x", "more_body": False}

    scope = scope_of(
        "POST",
        path,
        content_length="1",
        content_type="multipart/form-data; boundary=x",
        cookie=f"{settings.SESSION_COOKIE_NAME}={cookie or session()}",
    )
    await server(scope, receive, sent)
    return int(sent[0]["status"])


def test_slow_uploads_leave_threads_for_other_requests() -> None:
    async def run() -> None:
        application = Slow()
        server = AsgiApplication(application, THREADS, finders=FINDERS | {UploadKind.STAFF: user_of})
        tasks = [asyncio.create_task(ask(server, UPLOAD)) for _ in range(2 * THREADS)]
        await application.begins(AT_ONCE)
        assert await asyncio.wait_for(ask(server, OTHER), SECONDS) == 200
        assert not application.has_begun_another()
        application.may_end.set()
        assert await asyncio.wait_for(asyncio.gather(*tasks), SECONDS) == [200] * len(tasks)

    asyncio.run(run())


def test_upload_of_disconnected_client_keeps_the_slot_until_done() -> None:
    async def run() -> None:
        application = Slow()
        server = AsgiApplication(application, THREADS, finders=FINDERS | {UploadKind.STAFF: user_of})
        tasks = [asyncio.create_task(ask(server, UPLOAD)) for _ in range(AT_ONCE)]
        await application.begins(AT_ONCE)
        for each in tasks:
            each.cancel()
        await asyncio.wait(tasks)
        late = asyncio.create_task(ask(server, UPLOAD))
        assert await asyncio.wait_for(ask(server, OTHER), SECONDS) == 200
        assert not application.has_begun_another()
        application.may_end.set()
        assert await asyncio.wait_for(late, SECONDS) == 200

    asyncio.run(run())


def test_body_is_closed_although_the_event_loop_has_ended() -> None:
    requests: list[ServiceRequest] = []
    begun, may_end = threading.Event(), threading.Event()

    def application(request: ServiceRequest) -> HttpResponse:
        requests.append(request)
        begun.set()
        assert may_end.wait(SECONDS)
        return HttpResponse()

    async def run() -> None:
        task = asyncio.create_task(ask(AsgiApplication(application, THREADS), OTHER))
        await asyncio.to_thread(begun.wait, SECONDS)
        task.cancel()

    asyncio.run(run())
    assert not requests[0].body_file.closed
    may_end.set()
    wait_until(lambda: requests[0].body_file.closed, SECONDS)


def test_incomplete_upload_frees_the_upload_slot() -> None:
    async def run() -> None:
        server = AsgiApplication(Slow(), THREADS, finders=FINDERS | {UploadKind.STAFF: user_of})
        for _ in range(AT_ONCE + 1):
            assert await asyncio.wait_for(ask(server, UPLOAD, hangs_up=True), SECONDS) == 400

    asyncio.run(run())


@pytest.mark.slow
def test_upload_without_permission_gets_no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """The body counts as a small one, so slow anonymous clients cannot block uploads by staff."""
    monkeypatch.setattr("config.asgi.BODY_SECONDS", 0.5)

    async def run() -> None:
        strangers = [session() for _ in range(20)]

        def staff_only(meta: Mapping[str, Any]) -> str | None:
            cookie = user_of(meta).partition("=")[2]
            return None if cookie in strangers else cookie

        application = Slow()
        application.may_end.set()
        server = AsgiApplication(application, THREADS, finders=FINDERS | {UploadKind.STAFF: staff_only})
        dripping = [asyncio.create_task(ask(server, UPLOAD, drips=True, cookie=each)) for each in strangers]
        while not dripping[0].done():
            assert await asyncio.wait_for(ask(server, UPLOAD), SECONDS) in (200, 503)
        assert set(await asyncio.gather(*dripping)) <= {408, 503}

    asyncio.run(run())


def test_malformed_session_cookie_makes_no_query() -> None:
    cookies: list[Any] = []

    async def run() -> None:
        application = Slow()
        application.may_end.set()
        server = AsgiApplication(application, THREADS, finders=FINDERS | {UploadKind.STAFF: cookies.append})
        for cookie in ("abc", "x" * 31, "x" * 33, "X" * 32, "'" * 32, ""):
            await ask(server, UPLOAD, cookie=cookie or "-")
        await ask(server, OTHER, cookie="x" * 32)

    asyncio.run(run())
    assert cookies == []


def test_session_lookups_run_one_at_a_time_with_short_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    may_end, running = threading.Event(), threading.Semaphore(0)

    def slowly(meta: Mapping[str, Any]) -> None:
        running.release()
        assert may_end.wait(SECONDS)

    async def run() -> None:
        application = Slow()
        application.may_end.set()
        server = AsgiApplication(application, THREADS, finders=FINDERS | {UploadKind.STAFF: slowly})
        tasks = [asyncio.create_task(ask(server, UPLOAD)) for _ in range(1 + MAX_WAITING + 5)]
        assert await asyncio.to_thread(running.acquire, timeout=SECONDS)
        done, _waiting = await asyncio.wait(tasks, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
        assert {each.result() for each in done} == {503}
        assert not running.acquire(blocking=False)
        assert await asyncio.wait_for(ask(server, OTHER), SECONDS) == 200
        may_end.set()
        assert sorted(await asyncio.gather(*tasks)) == [200] * (1 + MAX_WAITING) + [503] * 5

    asyncio.run(run())


@pytest.mark.slow
def test_slow_session_lookup_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("config.concurrency.WAIT_SECONDS", 0.05)
    may_end = threading.Event()

    def slowly(meta: Mapping[str, Any]) -> None:
        may_end.wait(SECONDS)

    async def run() -> None:
        server = AsgiApplication(Slow(), THREADS, finders=FINDERS | {UploadKind.STAFF: slowly})
        assert await asyncio.wait_for(ask(server, UPLOAD), SECONDS) == 503
        may_end.set()

    asyncio.run(run())


def test_user_uploads_one_file_at_a_time() -> None:
    async def run() -> None:
        application = Slow()
        server = AsgiApplication(application, THREADS, finders=FINDERS | {UploadKind.STAFF: user_of})
        greedy = "0" * 31 + "a"
        tasks = [asyncio.create_task(ask(server, UPLOAD, cookie=greedy)) for _ in range(5)]
        await application.begins(1)
        assert await asyncio.wait_for(ask(server, OTHER), SECONDS) == 200
        assert not application.has_begun_another()
        other = asyncio.create_task(ask(server, UPLOAD))
        await application.begins(1)
        application.may_end.set()
        assert await asyncio.wait_for(asyncio.gather(other, *tasks), SECONDS) == [200] * 6

    asyncio.run(run())


@pytest.mark.slow
def test_upload_below_minimum_rate_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "GRACE_SECONDS", 0.1)

    async def run() -> None:
        server = AsgiApplication(Slow(), THREADS, finders=FINDERS | {UploadKind.STAFF: user_of})
        assert await asyncio.wait_for(ask(server, UPLOAD, drips=True), SECONDS) == 408
        assert await asyncio.wait_for(ask(server, UPLOAD, hangs_up=True), SECONDS) == 400

    asyncio.run(run())


@pytest.mark.slow
def test_upload_above_the_minimum_rate_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MIN_BYTES_PER_SECOND", 1)
    monkeypatch.setattr(uploads, "DEADLINE_SECONDS", 0.3)

    async def run() -> None:
        server = AsgiApplication(Slow(), THREADS, finders=FINDERS | {UploadKind.STAFF: user_of})
        assert await asyncio.wait_for(ask(server, UPLOAD, drips=True), SECONDS) == 408
        assert await asyncio.wait_for(ask(server, UPLOAD, hangs_up=True), SECONDS) == 400

    asyncio.run(run())


def claim_path() -> str:
    return f"/claim/clt_{next(numbers):032d}"


def path_of(meta: Mapping[str, Any]) -> str:
    """Each claim link takes an account."""
    return str(meta["PATH_INFO"])


def test_claims_use_a_quarter_of_the_threads_and_leave_uploads_of_staff() -> None:
    async def run() -> None:
        application = Slow()
        server = AsgiApplication(
            application, THREADS, finders=FINDERS | {UploadKind.STAFF: user_of, UploadKind.CLAIM: path_of}
        )
        claims = [asyncio.create_task(ask(server, claim_path())) for _ in range(THREADS)]
        await application.begins(1)
        assert await asyncio.wait_for(ask(server, OTHER), SECONDS) == 200
        assert not application.has_begun_another()
        staff = asyncio.create_task(ask(server, UPLOAD))
        await application.begins(1)
        application.may_end.set()
        assert await asyncio.wait_for(asyncio.gather(staff, *claims), SECONDS) == [200] * (1 + THREADS)

    asyncio.run(run())


def test_slow_bodies_at_claim_links_keep_no_other_claim_waiting() -> None:
    async def run() -> None:
        application = Slow()
        application.may_end.set()
        server = AsgiApplication(application, THREADS, finders=FINDERS | {UploadKind.CLAIM: path_of})
        dripping = [asyncio.create_task(ask(server, CLAIM, drips=True)) for _ in range(5)]
        assert await asyncio.wait_for(ask(server, claim_path()), SECONDS) == 200
        for each in dripping:
            each.cancel()
        await asyncio.wait(dripping)

    asyncio.run(run())


@pytest.mark.slow
def test_unknown_claim_link_gets_the_limits_of_a_small_body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("config.asgi.BODY_SECONDS", 0.1)

    async def run() -> None:
        server = AsgiApplication(Slow(), THREADS, finders=FINDERS | {UploadKind.CLAIM: lambda _: None})
        assert await asyncio.wait_for(ask(server, CLAIM, drips=True), SECONDS) == 408

    asyncio.run(run())


def merchant_of(meta: Mapping[str, Any]) -> str:
    """One key is refused."""
    if meta["PATH_INFO"].startswith("/Thai"):
        raise AuthenticationFailed
    return "mch_1"


def test_slips_of_a_merchant_are_read_one_by_one_and_without_a_key_not_at_all() -> None:
    async def run() -> None:
        application = Slow()
        server = AsgiApplication(application, THREADS, finders=FINDERS | {UploadKind.SLIP: merchant_of})
        first = asyncio.create_task(ask(server, "/v1/slips"))
        await application.begins(1)
        second = asyncio.create_task(ask(server, "/v1/slips"))
        # Not one byte of its body is read.
        assert await asyncio.wait_for(ask(server, "/Thai/v1/slips", drips=True), SECONDS) == 401
        assert await asyncio.wait_for(ask(server, OTHER), SECONDS) == 200
        assert not application.has_begun_another()
        application.may_end.set()
        assert [*await asyncio.wait_for(asyncio.gather(first, second), SECONDS)] == [200, 200]

    asyncio.run(run())


def test_slow_slip_gets_a_timeout_and_an_overload_the_envelope_of_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(uploads, "GRACE_SECONDS", 0.05)

    def overloaded(meta: Mapping[str, Any]) -> str:
        raise OverloadedError

    async def run() -> None:
        server = AsgiApplication(Slow(), THREADS, finders=FINDERS | {UploadKind.SLIP: lambda _: "mch_1"})
        assert await asyncio.wait_for(ask(server, "/v1/slips", drips=True), SECONDS) == 408
        server = AsgiApplication(Slow(), THREADS, finders=FINDERS | {UploadKind.SLIP: overloaded})
        assert await asyncio.wait_for(ask(server, "/v1/slips"), SECONDS) == 503

    asyncio.run(run())


def test_waiting_card_payments_use_only_card_threads() -> None:
    async def run() -> None:
        application = Slow()
        server = AsgiApplication(application, THREADS, card_threads=2)
        tasks = [asyncio.create_task(ask(server, CARDS)) for _ in range(2 * THREADS)]
        await application.begins(2)
        assert await asyncio.wait_for(ask(server, OTHER), SECONDS) == 200
        assert not application.has_begun_another()
        application.may_end.set()
        assert await asyncio.wait_for(asyncio.gather(*tasks), SECONDS) == [200] * len(tasks)

    asyncio.run(run())


@pytest.mark.parametrize("path", sorted(concurrency.CARD_PAYMENT_PATHS))
def test_card_thread_pool_paths_are_card_payment_urls(path: str) -> None:
    """A path that is renamed must be renamed there too."""
    view: Any = resolve(path).func
    assert view.cls is PaymentViewSet
    assert concurrency.is_card_payment({"REQUEST_METHOD": "POST", "PATH_INFO": path})
    assert not concurrency.is_card_payment({"REQUEST_METHOD": "GET", "PATH_INFO": path})
