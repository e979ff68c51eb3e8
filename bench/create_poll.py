"""Creating a code and polling a payment: the service and the peer."""

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from bench import http
from bench.cost import Cost
from bench.http import NotMeasurable, Request, load
from bench.rounds import OURS, RATE, Candidate, Figures, quantiles, run_rounds
from bench.stack import ROOT, DetachedStack, wait_until
from config.devstack import ports
from core import ids

PEER = "(a) FastAPI + asyncpg"
CREATE_PATH, PAYMENTS_PATH = "/Thai/v1/qr-codes", "/Thai/v1/payments"
CODE = {"amount": 150_000, "currency": "THB", "reference": "order-1042", "client_name": "Somchai Jaidee"}
BODY = json.dumps({**CODE, "metadata": {"table": 4}}).encode()
CONNECTIONS, POLLED = 8, 100
SERVER_SECONDS = 120.0
SERVER_TIME = "server us"
PARTS = {"create": "create a QR code", "poll": "poll a payment"}


def measure(
    stack: DetachedStack, parts: Sequence[str], *, warm_up: float, seconds: float, rounds: int
) -> dict[str, list[Candidate]]:
    """Rounds of these parts, by their title. Raises NotMeasurable."""
    with _peer(stack) as peer:
        compared = _RequestComparison(stack, {OURS: (stack.port, stack.pids["web"]), PEER: peer})
        results = {PARTS[part]: compared.candidates(part) for part in parts}
        for title, candidates in results.items():
            run_rounds(title, candidates, warm_up=warm_up, extent=seconds, rounds=rounds)
    return results


@contextmanager
def _peer(stack: DetachedStack) -> Iterator[tuple[int, int]]:
    """Run the peer with two workers and the settings of the instance; yield its port and process id."""
    port = ports.pick()
    command = [sys.executable, "-m", "uvicorn", "bench.peer:app", "--workers", "2", "--port", str(port)]
    command += ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
    with server(command, port, {**stack.environ, **stack.env}) as pid:
        yield port, pid


@contextmanager
def server(command: Sequence[str], port: int, environ: Mapping[str, str]) -> Iterator[int]:
    """Run a server that listens to the port; yield its process id."""
    process = subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        wait_until(lambda: not ports.is_free(port) or process.poll() is not None, SERVER_SECONDS)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


class _RequestComparison:
    """Two servers by name, each with its port and process id, with the requests for them."""

    def __init__(self, stack: DetachedStack, servers: Mapping[str, tuple[int, int]]) -> None:
        """Create payments to poll, and check that both servers answer the same. Raises NotMeasurable."""
        self._stack, self._servers = stack, servers
        self._authorization = {"Authorization": f"Bearer {stack.demo['secret_key']}"}
        for port, _ in servers.values():
            load(port, self._creations(), connections=2, seconds=0.5)
        listed = http.ask(stack.port, Request("GET", f"{PAYMENTS_PATH}?limit={POLLED}", self._authorization))
        self._polls = [
            Request("GET", f"{PAYMENTS_PATH}/{payment['payment_id']}", self._authorization)
            for payment in listed["payments"]
        ]
        self._compare()

    def candidates(self, part: str) -> list[Candidate]:
        polls = [poll.to_bytes() for poll in self._polls]
        requests = {"create": self._creations, "poll": lambda: itertools.cycle(polls)}[part]
        return [
            Candidate(name, partial(self._play, port, pid, requests))
            for name, (port, pid) in self._servers.items()
        ]

    def _play(self, port: int, pid: int, requests: Callable[[], Iterator[bytes]], seconds: float) -> Figures:
        cost = Cost(self._stack, {pid: "server"})
        latencies, passed = load(port, requests(), connections=CONNECTIONS, seconds=seconds)
        count = len(latencies)
        return {RATE: count / passed, **quantiles(latencies), **cost.each(count)}

    def _creations(self) -> Iterator[bytes]:
        run = ids.random_text(12)
        return (self._creation(f"{run}-{number}").to_bytes() for number in itertools.count())

    def _creation(self, key: str) -> Request:
        return Request("POST", CREATE_PATH, {**self._authorization, "Idempotency-Key": key}, BODY)

    def _compare(self) -> None:
        """Check that both servers answer the same, but for new fields of ours. Raises NotMeasurable."""
        served = [port for port, _ in self._servers.values()]
        polls = [http.ask(port, self._polls[0]) for port in served]
        codes = [sorted(http.ask(port, self._creation(ids.random_text(20)))) for port in served]
        if not (polls[1].items() <= polls[0].items() and set(codes[1]) <= set(codes[0])):
            raise NotMeasurable(f"The servers differ: {polls} {codes}")
