"""A name server on loopback that the resolver of the system asks, with real packets."""

import ctypes
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

A, CNAME, AAAA = 1, 5, 28
ANSWER, NO_SUCH_NAME = 0x8180, 0x8183
HEADER = struct.Struct("!6H")


class NameServer:
    """Set names with `on` and `alias`. `lookups` counts the look-ups of each name."""

    def __init__(self, sock: socket.socket) -> None:
        self.lookups: Counter[str] = Counter()
        self.ttl = 0
        self.silent: set[str] = set()
        self._sock = sock
        self._rounds: dict[tuple[str, int], list[list[bytes]]] = {}
        self._aliases: dict[str, str] = {}
        self._unanswered: list[tuple[bytes, Any]] = []

    def on(self, name: str, *rounds: str) -> None:
        """Answer look-ups with one list of addresses after the other. The last one is repeated."""
        for kind, version in ((A, 4), (AAAA, 6)):
            found = [[ip_address(text) for text in each.split()] for each in rounds]
            self._rounds[name, kind] = [
                [address.packed for address in each if address.version == version] for each in found
            ]

    def alias(self, name: str, target: str) -> None:
        """Answer with a CNAME and the addresses of `target`, as recursive servers do."""
        self._aliases[name] = target

    def getaddrinfo(self, host: str, port: int, **options: Any) -> Any:
        """The `getaddrinfo` of the system. The calling thread asks this server from now on."""
        _let_thread_ask(self._sock.getsockname()[1])
        return socket.getaddrinfo(host, port, **options)

    def serve(self) -> None:
        while True:
            question, asker = self._sock.recvfrom(512)
            if not question:
                break
            name, _ = _parse(question)
            if name in self.silent:
                self._unanswered.append((question, asker))
            else:
                self._sock.sendto(self._answer(question), asker)
        for question, asker in self._unanswered:
            self._sock.sendto(_message(question, NO_SUCH_NAME, []), asker)

    def _answer(self, question: bytes) -> bytes:
        name, kind = _parse(question)
        self.lookups[name] += kind == A
        target = self._aliases.get(name, name)
        rounds = self._rounds.get((target, kind))
        if rounds is None:
            return _message(question, NO_SUCH_NAME, [])
        found = rounds.pop(0) if len(rounds) > 1 else rounds[0]
        records = [] if target == name else [_record(name, CNAME, self.ttl, _encoded(target))]
        return _message(question, ANSWER, records + [_record(target, kind, self.ttl, each) for each in found])


@contextmanager
def running_name_server() -> Iterator[NameServer]:
    """A name server during the block. Unanswered look-ups get "no such name" at its end."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        server = NameServer(sock)
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            yield server
        finally:
            sock.sendto(b"", sock.getsockname())
            thread.join()


def _parse(question: bytes) -> tuple[str, int]:
    labels, at = [], HEADER.size
    while length := question[at]:
        labels.append(question[at + 1 : at + 1 + length].decode())
        at += 1 + length
    return ".".join(labels), int.from_bytes(question[at + 1 : at + 3], "big")


def _message(question: bytes, flags: int, records: list[bytes]) -> bytes:
    header = HEADER.pack(int.from_bytes(question[:2], "big"), flags, 1, len(records), 0, 0)
    return header + question[HEADER.size :] + b"".join(records)


def _record(name: str, kind: int, ttl: int, data: bytes) -> bytes:
    return _encoded(name) + struct.pack("!HHIH", kind, 1, ttl, len(data)) + data


def _encoded(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


class _Address(ctypes.Structure):
    """`struct sockaddr_in`."""

    _fields_ = (
        ("family", ctypes.c_uint16),
        ("port", ctypes.c_uint16),
        ("address", ctypes.c_uint8 * 4),
        ("zero", ctypes.c_uint8 * 8),
    )


class _State(ctypes.Structure):
    """The beginning of `struct __res_state` of glibc. Each thread has its own."""

    _fields_ = (
        ("retrans", ctypes.c_int),
        ("retry", ctypes.c_int),
        ("options", ctypes.c_ulong),
        ("nscount", ctypes.c_int),
        ("servers", _Address * 3),
    )


def _let_thread_ask(port: int) -> None:
    libc = ctypes.CDLL(None)
    libc.__res_state.restype = ctypes.POINTER(_State)
    assert libc.__res_init() == 0
    state = libc.__res_state().contents
    # With a long time-out no look-up is repeated and counted twice on a busy machine.
    state.retrans, state.nscount = 60, 1
    state.servers[0] = _Address(socket.AF_INET, socket.htons(port), (ctypes.c_uint8 * 4)(127, 0, 0, 1))
