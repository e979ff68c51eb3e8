"""A double of the LINE Messaging API on loopback, written from its public reference.

https://developers.line.biz/en/reference/messaging-api/#send-push-message and #retry-api-request.
"""

import re
import threading
from uuid import UUID

import orjson

from tests.webhook_receiver import ReceivedRequest, Receiver, Reply, Script

TOKEN = "channelAccessTokenOfTheShop0123456789+/="
CHAT = "U4af4980629f4a1b3c6d7e8f9a0b1c2d3"
BLOCKED = "Uffffffffffffffffffffffffffffffff"
PUSH = "/v2/bot/message/push"


def refusal(status: int, message: str, **headers: str) -> Reply:
    return Reply(status, headers, orjson.dumps({"message": message}))


class Line(Receiver):
    """Answers 200 once for each retry key and 409 after that, or what `failures` has first."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.failures: list[Script] = []
        self.accepted: dict[str, str] = {}
        self._lock = threading.Lock()

    @property
    def texts(self) -> list[str]:
        """What people see, in the order of its arrival."""
        return list(self.accepted.values())

    def reply_to(self, request: ReceivedRequest) -> Script:
        with self._lock:
            return self.failures.pop(0) if self.failures else self._answer(request)

    def accept(self, request: ReceivedRequest) -> Reply:
        return self._answer(request)

    def _answer(self, request: ReceivedRequest) -> Reply:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return refusal(401, "Authentication failed. Confirm that the access token is valid.")
        if (request.method, request.path) != ("POST", PUSH):
            return refusal(404, "Not found")
        to, messages = request.json["to"], request.json["messages"]
        key = str(UUID(request.headers["x-line-retry-key"]))
        if not re.fullmatch("[UCR][0-9a-f]{32}", to) or not 1 <= len(messages) <= 5:
            return refusal(400, "The request body has 1 error(s)")
        if not 1 <= len(messages[0]["text"]) <= 5000 or messages[0]["type"] != "text":
            return refusal(400, "Length must be between 0 and 5000")
        if to == BLOCKED:
            return refusal(403, "Not authorized to use this endpoint")
        if key in self.accepted:
            return refusal(409, "The retry key is already accepted", **{"x-line-accepted-request-id": key})
        self.accepted[key] = messages[0]["text"]
        return Reply(body=b'{"sentMessages":[{"id":"461230966842064897"}]}')
