"""A shop's webhook endpoint in one file of plain Python: verifies each notification and prints it.

WEBHOOK_SECRET=whsec_... python3 docs/examples/receiver.py 9000
"""

import base64
import hmac
import json
import os
import sys
import time
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer

TOLERANCE_SECONDS = 300
LARGEST_BODY = 1_000_000


def key_of(secret: str) -> bytes:
    """`whsec_` is followed by the key in base64; any other text is the key itself."""
    if secret.startswith("whsec_"):
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    return secret.encode()


def is_genuine(headers: Message, body: bytes) -> bool:
    """Verify the raw bytes, before anything parses them. A secret being renewed makes two signatures."""
    message_id, sent_at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not sent_at.isdecimal() or abs(int(time.time()) - int(sent_at)) > TOLERANCE_SECONDS:
        return False
    mac = hmac.digest(KEY, f"{message_id}.{sent_at}.".encode() + body, "sha256")
    expected = b"v1," + base64.b64encode(mac)
    given = headers.get("webhook-signature", "").encode().split()
    return any(hmac.compare_digest(expected, signature) for signature in given)


class Endpoint(BaseHTTPRequestHandler):
    timeout = 10  # seconds that a silent client may keep others waiting

    def do_POST(self) -> None:
        body = self.rfile.read(min(int(self.headers.get("content-length", 0)), LARGEST_BODY))
        if not is_genuine(self.headers, body):
            self.answer(400)
            print("refused", flush=True)
            return
        message = json.loads(body)
        # Yours is a table in which event_id is unique: store first, answer, and work from there.
        is_new = message["event_id"] not in seen
        seen.add(message["event_id"])
        self.answer(204)
        if is_new:
            print("genuine", message["event"], json.dumps(message["data"]), flush=True)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """What is printed above is enough."""


if __name__ == "__main__":
    KEY, seen = key_of(os.environ.get("WEBHOOK_SECRET", "")), set[str]()
    if len(sys.argv) != 2 or not KEY:
        sys.exit("usage: WEBHOOK_SECRET=whsec_... python3 receiver.py PORT")
    print(f"listening on http://127.0.0.1:{sys.argv[1]}", flush=True)
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Endpoint).serve_forever()
