"""`python -m bench.receiver COUNT`: minimal webhook endpoints on COUNT ports.

It records each POST by path with its arrival time. `/after/<seconds>` is answered later. A GET of the same
path returns the arrivals since the last GET as JSON. A POST takes about 30 microseconds of processor time.
"""

import asyncio
import json
import sys
import time
from collections import defaultdict

import uvloop

HOST = "127.0.0.1"
HEAD_END = b"\r\n\r\n"
LENGTH, MESSAGE_ID = b"\r\ncontent-length:", b"\r\nwebhook-id:"
SLOW = b"/after/"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

arrivals: defaultdict[bytes, list[tuple[str, float]]] = defaultdict(list)


class Endpoint(asyncio.Protocol):
    """A kept connection. The next request comes only after an answer."""

    def __init__(self) -> None:
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self.received += data
        end = self.received.find(HEAD_END)
        if end < 0:
            return
        head = self.received[:end]
        lower = head.lower()
        body = self.received[end + len(HEAD_END) :]
        if len(body) < int(header(head, lower, LENGTH) or 0):
            return
        self.received = b""
        self.receive(head, lower, body)

    def receive(self, head: bytes, lower: bytes, body: bytes) -> None:
        """Answer a complete request. lower: the head in lower case."""
        method, path, _ = head.split(b" ", 2)
        if method == b"GET":
            self.send(_as_json(arrivals.pop(path, [])))
        else:
            arrivals[path].append((header(head, lower, MESSAGE_ID).decode(), time.time()))
            self.take(path)

    def take(self, path: bytes) -> None:
        if path.startswith(SLOW):
            asyncio.get_running_loop().call_later(float(path[len(SLOW) :]), self.send, OK)
        else:
            self.send(OK)

    def send(self, response: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(response)


def header(head: bytes, lower: bytes, name: bytes) -> bytes:
    """The value of a header, or nothing. name: in lower case, between a line end and a colon."""
    at = lower.find(name)
    if at < 0:
        return b""
    end = head.find(b"\r", at + len(name))
    return head[at + len(name) : end if end >= 0 else len(head)].strip()


def _as_json(taken: list[tuple[str, float]]) -> bytes:
    body = json.dumps(taken).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


async def serve(count: int) -> None:
    """Print the ports as JSON, and answer until the process ends."""
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(Endpoint, HOST, 0) for _ in range(count)]
    print(json.dumps([server.sockets[0].getsockname()[1] for server in servers]), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
