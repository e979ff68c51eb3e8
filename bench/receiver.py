"""`python -m bench.receiver COUNT`: minimal webhook endpoints on COUNT ports.

It records each POST by path with its arrival time. A GET of the same path returns the arrivals since the last
GET as JSON.
"""

import asyncio
import json
import sys
import time
from collections import defaultdict

import uvloop

from bench.endpoint import MESSAGE_ID, OK, Endpoint, header

HOST = "127.0.0.1"

arrivals: defaultdict[bytes, list[tuple[str, float]]] = defaultdict(list)


class RecordingEndpoint(Endpoint):
    def receive(self, head: bytes, lower: bytes, body: bytes) -> None:
        method, path, _ = head.split(b" ", 2)
        if method == b"GET":
            self.send(_as_json(arrivals.pop(path, [])))
        else:
            arrivals[path].append((header(head, lower, MESSAGE_ID).decode(), time.time()))
            self.send(OK)


def _as_json(taken: list[tuple[str, float]]) -> bytes:
    body = json.dumps(taken).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


async def serve(count: int) -> None:
    """Print the ports as JSON, and answer until the process ends."""
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(RecordingEndpoint, HOST, 0) for _ in range(count)]
    print(json.dumps([server.sockets[0].getsockname()[1] for server in servers]), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
