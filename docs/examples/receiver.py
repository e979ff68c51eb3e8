"""A shop's webhook endpoint in one file of plain Python: verifies each notification and prints it.

python3 docs/examples/receiver.py 9000 whsec_...
"""

import base64
import hashlib
import hmac
import json
import sys
import time
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer

if len(sys.argv) != 3:
    sys.exit("usage: python3 receiver.py PORT SECRET")
PORT, SECRET = int(sys.argv[1]), sys.argv[2]
KEY = base64.b64decode(SECRET.removeprefix("whsec_"))
TOLERANCE_SECONDS = 300


def is_genuine(headers: Message, body: bytes) -> bool:
    """The signature covers id, time and the raw bytes: verify before parsing, and refuse what is old."""
    sent_at = headers["webhook-timestamp"]
    if abs(time.time() - int(sent_at)) > TOLERANCE_SECONDS:
        return False
    content = f"{headers['webhook-id']}.{sent_at}.".encode() + body
    expected = base64.b64encode(hmac.digest(KEY, content, hashlib.sha256)).decode()
    given = [entry.partition(",")[2] for entry in headers["webhook-signature"].split()]
    return any(hmac.compare_digest(expected, signature) for signature in given)


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        genuine = is_genuine(self.headers, body)
        self.send_response(204 if genuine else 400)
        self.end_headers()
        message = json.loads(body)
        print("genuine" if genuine else "FORGED ", message["event"], message["data"], flush=True)

    def log_message(self, *_: object) -> None:
        """The line above is enough."""


print(f"listening on http://127.0.0.1:{PORT}", flush=True)
HTTPServer(("127.0.0.1", PORT), Endpoint).serve_forever()
