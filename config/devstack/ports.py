"""Ports on 127.0.0.1."""

import random
import socket

LOOPBACK = "127.0.0.1"
# Systems give ports above these to clients, and to servers that ask for any port.
PICKED = range(10_000, 32_768)


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether no process listens on the port. Old connections of a closed listener do not matter."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def pick() -> int:
    """A free port that the system gives to nobody before the caller, or the caller's next start, uses it."""
    return next(port for port in iter(lambda: random.choice(PICKED), None) if is_free(port))
