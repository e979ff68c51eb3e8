"""The WSGI application as the web server calls it."""

import json
from typing import Any

import pytest
from django.test import RequestFactory

from config import asgi
from config.handler import ServiceHandler


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("charset", ["hex", "utf-7", "unicode_escape", "none"])
@pytest.mark.parametrize("form", ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded"])
def test_charset_that_a_request_names_is_ignored(form: str, charset: str) -> None:
    application = ServiceHandler()
    body = b'--x\r\nContent-Disposition: form-data; name="last_digits"\r\n\r\n+2AA-\r\n--x--\r\n'
    for method, path in (("GET", "/v1/payments?limit=1"), ("POST", "/v1/qr-codes"), ("POST", "/claim/clt_x")):
        environ = RequestFactory().generic(method, path, body).environ
        environ["CONTENT_TYPE"] = f"{form}; charset={charset}"
        status, _headers, _body = asgi.run_application(application, environ)
        assert status in {401, 404}


def test_fault_outside_django_is_logged_with_the_request_id(caplog: pytest.LogCaptureFixture) -> None:
    def application(environ: Any, start_response: Any) -> Any:
        raise RuntimeError("not even started")

    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "HTTP_X_REQUEST_ID": "order-17"}
    status, headers, body = asgi.run_application(application, environ)
    shown = [dict(headers)["X-Request-Id"], json.loads(body)["error"]["request_id"]]
    assert (status, shown) == (500, ["order-17", "order-17"])
    assert [getattr(record, "request_id", None) for record in caplog.records] == ["order-17"]
