"""What the client of the benchmark sends, and what it reads."""

from bench.http import Request, header


def test_request_has_the_length_of_its_body() -> None:
    request = Request("POST", "/Thai/v1/qr-codes", {"Idempotency-Key": "order-1"}, b'{"amount": 150000}')
    head, _, body = request.to_bytes().partition(b"\r\n\r\n")
    assert head.startswith(b"POST /Thai/v1/qr-codes HTTP/1.1\r\nHost: ")
    assert {b"Content-Length: 18", b"Idempotency-Key: order-1"} <= {*head.split(b"\r\n")}
    assert body == request.body


def test_header_is_found_in_any_case_and_keeps_the_case_of_its_value() -> None:
    head = b"POST /hook HTTP/1.1\r\nHost: 127.0.0.1\r\nWebhook-Id: evt_Ab\r\nContent-Length: 2"
    assert header(head, b"webhook-id") == b"evt_Ab"
    assert header(head, b"content-length") == b"2"
    assert header(head, b"webhook-timestamp") == b""
