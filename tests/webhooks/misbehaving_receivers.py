"""Scripts of receivers that misbehave, each run after every request, and ports without a receiver."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from tests.webhook_receiver import Receiver, ReceiverConnection, Script

listening = Receiver.running


def replies(*answers: bytes) -> Script:
    """Send one answer after the other. The last one is repeated."""
    remaining = list(answers)
    return lambda connection: connection.send(remaining.pop(0) if len(remaining) > 1 else remaining[0])


def one_script_per_request(*scripts: Script) -> Script:
    remaining = list(scripts)

    def script(connection: ReceiverConnection) -> None:
        remaining.pop(0)(connection)

    return script


def _then(answer: bytes, action: Callable[[ReceiverConnection], None]) -> Script:
    def script(connection: ReceiverConnection) -> None:
        connection.send(answer)
        action(connection)

    return script


def then_closes(answer: bytes) -> Script:
    return _then(answer, ReceiverConnection.hang_up)


def then_resets(answer: bytes) -> Script:
    return _then(answer, ReceiverConnection.reset)


def then_stalls(answer: bytes) -> Script:
    return _then(answer, ReceiverConnection.wait)


def then_drips(answer: bytes, drop: bytes = b"x", every: float = 0.02) -> Script:
    def drip(connection: ReceiverConnection) -> None:
        while True:
            connection.send(drop)
            connection.wait(every)

    return _then(answer, drip)


def then_floods(answer: bytes, flood: bytes) -> Script:
    def pour(connection: ReceiverConnection) -> None:
        while True:
            connection.send(flood)

    return _then(answer, pour)


@contextmanager
def port_with_full_backlog() -> Iterator[int]:
    """A port that accepts no more connections: it drops their first packet."""
    with ExitStack() as open_sockets:
        server = open_sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            filler = open_sockets.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(server.getsockname())
        yield server.getsockname()[1]


@contextmanager
def unused_port() -> Iterator[int]:
    """A port on which nobody listens during the block."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
