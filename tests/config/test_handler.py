"""Requests as the web server gives them to Django."""

import json

import pytest

from config.asgi import ServiceRequest, answer
from config.handler import ServiceHandler
from tests.config.asgi_messages import scope_of


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("charset", ["hex", "utf-7", "unicode_escape", "none"])
@pytest.mark.parametrize("form", ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded"])
def test_charset_that_a_request_names_is_ignored(form: str, charset: str) -> None:
    handle = ServiceHandler()
    body = b'--x\r\nContent-Disposition: form-data; name="last_digits"\r\n\r\n+2AA-\r\n--x--\r\n'
    for method, path in (("GET", "/v1/payments?limit=1"), ("POST", "/v1/qr-codes"), ("POST", "/claim/clt_x")):
        kind = f"{form}; charset={charset}"
        request = ServiceRequest(scope_of(method, path, content_type=kind, content_length=str(len(body))))
        with request.body_file:
            request.body_file.write(body)
            request.body_file.seek(0)
            status, _headers, _body = answer(handle, request)
        assert status in {401, 404}


def test_fault_outside_django_is_logged_with_the_request_id(caplog: pytest.LogCaptureFixture) -> None:
    def handle(request: ServiceRequest) -> None:
        raise RuntimeError("not even started")

    request = ServiceRequest(scope_of("GET", "/", x_request_id="order-17"))
    with request.body_file:
        status, headers, body = answer(handle, request)  # type: ignore[arg-type]  # it returns nothing
    shown = [dict(headers)[b"x-request-id"], json.loads(body)["error"]["request_id"]]
    assert (status, shown) == (500, [b"order-17", "order-17"])
    assert [getattr(record, "request_id", None) for record in caplog.records] == ["order-17"]
