"""Each change records its own actor and request id, also when requests run at the same time."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from config.celery import app
from core import request_context
from core.http.middleware import AccessMiddleware, BrowserSessions, BrowserUsers
from core.observing.logs import JsonFormatter
from core.request_context import RequestContext
from merchants import secret_keys
from tests.conftest import Shop, new_client, open_shop
from tests.webhooks.builders import make_endpoint
from webhooks.models import Event


def actor_of(shop: Shop) -> str:
    return f"key:{secret_keys.public_id(shop.secret_key)}"


def seen_by(request: HttpRequest) -> RequestContext:
    """The origin within a request, as a view would find it."""
    seen: list[RequestContext] = []

    def view(request: HttpRequest) -> HttpResponse:
        seen.append(request_context.current())
        return HttpResponse()

    AccessMiddleware(BrowserSessions(BrowserUsers(view)))(request)
    return seen[0]


def test_event_stores_api_key_as_actor_and_request_id(shop: Shop) -> None:
    shop.post("/v1/qr-codes", {"amount": 100, "currency": "THB"}, **{"X-Request-Id": "till-7.0042"})
    event = Event.objects.get()
    assert (event.actor, event.request_id) == (actor_of(shop), "till-7.0042")


def test_request_without_id_gets_a_generated_request_id(shop: Shop) -> None:
    response = shop.post("/v1/qr-codes", {"amount": 100, "currency": "THB"})
    assert Event.objects.get().request_id == response.headers["X-Request-Id"]


def test_ping_event_has_actor(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    response = shop.post(f"/v1/webhooks/{endpoint.id}/test")
    event = Event.objects.get()
    assert (event.actor, event.request_id) == (actor_of(shop), response.headers["X-Request-Id"])


def test_request_context_is_reset_for_each_request() -> None:
    request_context.begin(actor="key:ab12cd34", request_id="before")
    seen = seen_by(RequestFactory().get("/v1/payments", headers={"X-Request-Id": "after"}))
    assert seen == RequestContext("", "after", "127.0.0.1")


@pytest.mark.parametrize(("path", "actor"), [("/admin/", "staff:somsri"), ("/docs", "")])
def test_staff_are_actors_only_in_the_admin(client: Client, db: None, path: str, actor: str) -> None:
    client.force_login(User.objects.create_user("somsri", is_staff=True))
    request = RequestFactory().get(path)
    request.COOKIES = {name: cookie.value for name, cookie in client.cookies.items()}
    assert seen_by(request).actor == actor


@pytest.mark.slow
def test_request_context_is_separate_in_each_thread(transactional_db: None) -> None:
    shops = [open_shop("Somtam House"), open_shop("Larb Palace")]

    def ask(number: int) -> None:
        try:
            asking = shops[number % 2]
            request_body = {"X-Request-Id": f"{actor_of(asking)[4:]}.{number}"}
            caller = Shop(asking.merchant, asking.secret_key, new_client())
            caller.post("/v1/qr-codes", {"amount": 100, "currency": "THB"}, **request_body)
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(ask, range(24)))
    actors = {shop.merchant.id: actor_of(shop) for shop in shops}
    events = Event.objects.all()
    assert len({event.request_id for event in events}) == 24
    for event in events:
        assert event.actor == actors[event.merchant_id]
        assert event.request_id.partition(".")[0] == event.actor.removeprefix("key:")


def test_task_name_is_the_actor_of_a_task() -> None:
    seen: list[RequestContext] = []

    @app.task(name="tests.look")
    def look() -> None:
        seen.append(request_context.current())

    try:
        request_context.begin(actor="key:ab12cd34", request_id="before")
        first, second = look.apply().id, look.apply().id
    finally:
        app.tasks.pop("tests.look")
    assert seen == [RequestContext("task:tests.look", first), RequestContext("task:tests.look", second)]


def line(**extra: object) -> dict[str, object]:
    record = logging.LogRecord("api", logging.ERROR, "", 1, "failed", (), None)
    record.__dict__ |= extra
    written: dict[str, object] = json.loads(JsonFormatter().format(record))
    return written


def test_log_line_has_the_request_id_of_the_context_unless_given() -> None:
    request_context.begin(request_id="req_1")
    assert line()["request_id"] == "req_1"
    assert line(request_id="req_2")["request_id"] == "req_2"
    request_context.begin()
    assert line()["request_id"] is None
