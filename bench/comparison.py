"""The candidates that are measured, and rounds of requests over HTTP and by pgbench."""

import itertools
import json
import statistics
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import psycopg

from bench import load, pgbench, processors
from bench.load import NotMeasurable
from bench.shops import BODY
from core import ids
from merchants import secret_keys
from tests.stack import Stack

POLLED = 200
CREATE, POLL = "create a QR code", "poll a payment"
P = TypeVar("P")
R = TypeVar("R")
OURS, PEER, BASELINE = "Thai QR Payments", "(a) FastAPI + asyncpg", "(b) pgbench, same SQL"


@dataclass(frozen=True)
class LoadProfile:
    """The seconds and connections of a round."""

    seconds: float
    connections: int


@dataclass
class Round:
    """The figures of one candidate in one round.

    Latencies are in milliseconds, the processor times of server and client in microseconds a request.
    """

    rate: float
    p50: float
    p95: float | None = None
    p99: float | None = None
    server_us: float | None = None
    client_us: float | None = None


@dataclass(frozen=True)
class Server:
    port: int
    pid: int


@dataclass
class Candidate(Generic[P, R]):
    """Runs rounds with results of type R. Each has an extent P: a load profile, or a number of messages."""

    name: str
    run_round: Callable[[P], R]
    rounds: list[R] = field(default_factory=list)

    def median(self, figure: str) -> float | None:
        values = [getattr(each, figure) for each in self.rounds]
        return None if None in values else statistics.median(values)


class RequestComparison:
    """The two servers and the database of one instance, with the requests for them."""

    def __init__(self, stack: Stack, peer: Server, folder: Path) -> None:
        self.stack, self.folder = stack, folder
        self.servers = {OURS: Server(stack.port, stack.pids["web"]), PEER: peer}
        self.database_url = stack.owner_url
        self.digest = secret_keys.digest(stack.secret_key)
        self.head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {stack.secret_key}\r\n".encode()
        self.payment_ids: list[str] = []
        self.merchant_id = ""

    def prepare(self) -> None:
        """Create payments to poll, and check that both servers answer the same. Raises NotMeasurable."""
        for server in self.servers.values():
            self._ask(server, self.creations(), LoadProfile(0.5, 2))
        with psycopg.connect(self.database_url) as connection:
            # Not those of the merchants of other parts.
            found = connection.execute(
                "SELECT p.id, p.merchant_id FROM payments_payment p"
                " JOIN merchants_apikey k USING (merchant_id) WHERE k.digest = %s LIMIT %s",
                [self.digest, POLLED],
            )
            rows = found.fetchall()
        self.payment_ids, self.merchant_id = [row[0] for row in rows], rows[0][1]
        self._compare()
        self._script(CREATE, pgbench.create_script(self.digest, self.merchant_id))
        self._script(POLL, pgbench.poll_script(self.digest, self.merchant_id, self.payment_ids[0]))

    def candidates(self, operation: str) -> list[Candidate[LoadProfile, Round]]:
        return [*self.servers_only(operation), Candidate(BASELINE, self._by_pgbench(operation))]

    def servers_only(self, operation: str) -> list[Candidate[LoadProfile, Round]]:
        """The candidates without pgbench."""
        requests = self.creations if operation == CREATE else self.polls
        return [Candidate(name, self._over_http(server, requests)) for name, server in self.servers.items()]

    def creations(self) -> Iterator[bytes]:
        head = b"POST /Thai/v1/qr-codes HTTP/1.1\r\n" + self.head
        tail = b"\r\nContent-Type: application/json\r\n" + _with_length(BODY)
        run = ids.random_text(12)
        return (head + f"Idempotency-Key: {run}-{n}".encode() + tail for n in itertools.count())

    def polls(self) -> Iterator[bytes]:
        requested = [
            f"GET /Thai/v1/payments/{payment_id} HTTP/1.1\r\n".encode() + self.head + b"\r\n"
            for payment_id in self.payment_ids
        ]
        return itertools.cycle(requested)

    def _over_http(
        self, server: Server, requests: Callable[[], Iterator[bytes]]
    ) -> Callable[[LoadProfile], Round]:
        def play(profile: LoadProfile) -> Round:
            before = processors.cpu_seconds(server.pid)
            result = self._ask(server, requests(), profile)
            after = processors.cpu_seconds(server.pid)
            each = 1e6 / len(result.latencies)
            server_us = None if before is None or after is None else each * (after - before)
            p50, p95, p99 = map(result.quantile, (0.5, 0.95, 0.99))
            return Round(result.rate, p50, p95, p99, server_us, each * result.client_seconds)

        return play

    def _by_pgbench(self, operation: str) -> Callable[[LoadProfile], Round]:
        def play(profile: LoadProfile) -> Round:
            script = self._path(operation)
            return Round(
                *pgbench.run(
                    self.database_url, script, connections=profile.connections, seconds=profile.seconds
                )
            )

        return play

    def _ask(self, server: Server, requests: Iterator[bytes], profile: LoadProfile) -> load.LoadResult:
        result = load.run(server.port, requests, connections=profile.connections, seconds=profile.seconds)
        if set(result.statuses) != {200}:
            raise NotMeasurable(
                f"port {server.port}: {dict(result.statuses)}, first {result.first_refusal!r}"
            )
        return result

    def _compare(self) -> None:
        """Check that both servers answer the same, but for new fields of ours. Raises NotMeasurable."""
        ports = [server.port for server in self.servers.values()]
        polls = [self._get(port, f"/Thai/v1/payments/{self.payment_ids[0]}") for port in ports]
        codes = [sorted(self._get(port, "/Thai/v1/qr-codes", BODY)) for port in ports]
        if not (polls[1].items() <= polls[0].items() and set(codes[1]) <= set(codes[0])):
            raise NotMeasurable(f"The servers differ: {polls} {codes}")

    def _get(self, port: int, path: str, body: bytes | None = None) -> dict[str, object]:
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body)
        request.add_header("Authorization", f"Bearer {self.stack.secret_key}")
        request.add_header("Content-Type", "application/json")
        request.add_header("Idempotency-Key", ids.random_text(20))
        with urllib.request.urlopen(request, timeout=10) as response:
            found: dict[str, object] = json.load(response)
        return found

    def _path(self, operation: str) -> Path:
        return self.folder / f"{operation.split(maxsplit=1)[0]}.sql"

    def _script(self, operation: str, text: str) -> None:
        self._path(operation).write_text(text)


def _with_length(body: bytes) -> bytes:
    """The end of a head with the length of the body, and the body."""
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
