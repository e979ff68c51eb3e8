"""The handler of the service answers as Django's own handler does."""

from collections.abc import Iterator
from typing import Any

import pytest
import time_machine
from django.core.handlers.wsgi import WSGIHandler
from django.test import RequestFactory
from pytest_django import Settings

from config.handler import ApplicationHandler
from core import clock
from tests.conftest import Shop, open_shop

REQUESTS = [
    ("GET", "/v1/balance"),
    ("PUT", "/v1/balance"),
    ("GET", "/Thai/v1/payments/pay_unknown"),
    ("GET", "/v1/qr-codes/qr_unknown/image"),
    ("POST", "/v1/qr-codes"),
    ("OPTIONS", "/v1/payments"),
    ("GET", "/no/such/path"),
    ("GET", "/v1/payments/"),
    ("GET", "/pay/cards/pay_unknown"),
    ("GET", "/healthz"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
    ("GET", "/admin"),
    ("GET", "/admin/"),
    ("GET", "/admin/login/"),
    ("POST", "/admin/login/"),
    ("GET", "/static/admin/css/base.css"),
    ("GET", "/static/unknown.css"),
    ("GET", "/sandbox/bank"),
]


class Answer:
    """The answer of a handler to one request, without what differs in each."""

    headers: dict[str, str]

    def __init__(self, handler: WSGIHandler, environ: dict[str, Any]) -> None:
        chunks = handler(environ, self._start)
        body = b"".join(chunks)
        chunks.close()
        # A login page has a new token in its form and in its cookie, and the time at which it expires.
        is_form = b"csrfmiddlewaretoken" in body
        self.body = b"" if is_form else body
        self.headers = {
            name: value.partition("=")[0] if name == "Set-Cookie" else value
            for name, value in self.headers.items()
            if not is_form or name not in {"Content-Length", "Expires"}
        }

    def _start(self, status: str, headers: list[tuple[str, str]], error: Any = None) -> Any:
        self.status, self.headers = status, dict(headers)


@pytest.fixture(scope="module")
def handlers() -> Iterator[tuple[WSGIHandler, WSGIHandler]]:
    yield WSGIHandler(), ApplicationHandler()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("has_key", [True, False], ids=["key", "no key"])
def test_handler_answers_as_the_one_of_django(
    handlers: tuple[WSGIHandler, WSGIHandler], settings: Settings, has_key: bool, subtests: Any
) -> None:
    settings.RATE_LIMIT = 0  # its headers would count down
    shop = open_shop("Somtam House")
    for method, path in REQUESTS:
        # Pages of the console show in a header when they were made.
        with subtests.test(method=method, path=path), time_machine.travel(clock.now(), tick=False):
            _compare(*(_ask(handler, shop, method, path, has_key) for handler in handlers))


def _compare(expected: Answer, answer: Answer) -> None:
    assert vars(answer) == vars(expected)
    assert answer.status[:3] != "500"


def _ask(handler: WSGIHandler, shop: Shop, method: str, path: str, has_key: bool) -> Answer:
    body, media_type = b"", "application/json"
    environ = RequestFactory().generic(method, path, body, media_type).environ | {
        "HTTP_X_REQUEST_ID": "the-same",
        **({"HTTP_AUTHORIZATION": f"Bearer {shop.secret_key}"} if has_key else {}),
    }
    return Answer(handler, environ)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("charset", ["hex", "utf-7", "unicode_escape", "none"])
@pytest.mark.parametrize("form", ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded"])
def test_charset_that_a_request_names_is_ignored(form: str, charset: str) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="last_digits"\r\n\r\n+2AA-\r\n--x--\r\n'
    handler, media_type = ApplicationHandler(), f"{form}; charset={charset}"
    for method, path in (("GET", "/v1/payments?limit=1"), ("POST", "/v1/qr-codes"), ("POST", "/claim/clt_x")):
        environ = RequestFactory().generic(method, path, body).environ | {"CONTENT_TYPE": media_type}
        assert Answer(handler, environ).status[:3] in {"401", "404"}
