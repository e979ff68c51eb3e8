"""A proxy in front of the service that loses answers, refuses or cuts connections, for clients that retry."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import requests

from tests.webhook_receiver import ReceivedRequest, Receiver, ReceiverConnection, Reply, Script

HOP_BY_HOP = {"connection", "content-length", "host", "transfer-encoding"}
Flaw = Callable[["FlawedProxy", ReceivedRequest], Script]


class FlawedProxy(Receiver):
    """Forwards requests to `target`, but the first ones meet the `flaws`, one each."""

    target: str
    flaws: list[Flaw]

    def reply_to(self, request: ReceivedRequest) -> Script:
        flaw = self.flaws.pop(0) if self.flaws else forwards
        return flaw(self, request)

    def forward(self, request: ReceivedRequest) -> Reply:
        """Send a request to the service; return its answer."""
        headers = {name: value for name, value in request.headers.items() if name not in HOP_BY_HOP}
        answer = requests.request(
            request.method, self.target + request.path, headers=headers, data=request.body, timeout=60
        )
        kept = {"Content-Type": answer.headers.get("Content-Type", "application/json")}
        return Reply(answer.status_code, kept, answer.content)


class ProxyWithoutEvents(FlawedProxy):
    """Answers nothing about events unless a test reads them, so that a job changes nothing in between."""

    reads = False

    def reply_to(self, request: ReceivedRequest) -> Script:
        if request.path.startswith("/v1/events") and not self.reads:
            return Reply(503)
        return super().reply_to(request)

    @contextmanager
    def with_events(self) -> Iterator[None]:
        self.reads = True
        try:
            yield
        finally:
            self.reads = False


def forwards(proxy: FlawedProxy, request: ReceivedRequest) -> Script:
    """The answer of the service."""
    return proxy.forward(request)


def loses_answer(proxy: FlawedProxy, request: ReceivedRequest) -> Script:
    """The service did it, but the connection is cut before its answer."""
    proxy.forward(request)
    return Reply(closes=True)


def cuts_answer(proxy: FlawedProxy, request: ReceivedRequest) -> Script:
    """The connection is cut in the middle of the answer."""
    answer = proxy.forward(request)

    def cut(connection: ReceiverConnection) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer.body)}\r\n\r\n"
        connection.send(head.encode() + answer.body[:20])
        connection.hang_up()

    return cut


def cuts_request(proxy: FlawedProxy, request: ReceivedRequest) -> Script:
    """The service never sees the request."""
    return Reply(closes=True)


def fails(proxy: FlawedProxy, request: ReceivedRequest) -> Script:
    """The service did it, but a gateway answers that it failed."""
    proxy.forward(request)
    return Reply(502, body=b"<html>Bad Gateway</html>")


def is_busy(proxy: FlawedProxy, request: ReceivedRequest) -> Script:
    """A gateway limits the rate."""
    return Reply(429, {"Retry-After": "0"}, b"slow down")
