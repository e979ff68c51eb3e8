"""Webhook deliveries a second, of the service and of bare loops."""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bench import processors
from bench.comparison import OURS, Candidate
from bench.load import NotMeasurable
from tests.stack import ROOT, Stack

HOOK = "/hook"
BARE_LOOP, URLLIB3_LOOP = "(c) bare loop, requests", "(d) bare loop, urllib3"
PATIENCE_SECONDS = 20.0
POLL_SECONDS = 0.05
# Wait so long for repeated messages after all have arrived.
DUPLICATE_SECONDS = 0.3


@dataclass(frozen=True)
class DeliveryRate:
    """Messages a second from the commit to the last arrival. Processor time in microseconds a message."""

    rate: float
    sender_us: float | None
    postgres_us: float | None
    receiver_us: float | None


class ReceiverProcess:
    """The process of the endpoints. It returns each message once; a repeated message stops the benchmark."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.pid = process.pid
        self.ports: list[int] = json.loads(process.stdout.readline())
        self._seen: dict[str, set[str]] = {}
        self._connection = http.client.HTTPConnection("127.0.0.1", self.ports[0])

    def url(self, number: int, path: str) -> str:
        return f"http://127.0.0.1:{self.ports[number]}{path}"

    def wait_for(self, path: str, count: int) -> dict[str, float]:
        """The arrival times of the next `count` messages, by id. Raises NotMeasurable."""
        arrived: dict[str, float] = {}
        patient_until = time.monotonic() + PATIENCE_SECONDS
        while len(arrived) < count:
            if time.monotonic() > patient_until:
                raise NotMeasurable(f"{len(arrived)} of {count} messages came to {path}")
            time.sleep(POLL_SECONDS)
            if new := self._take(path):
                arrived |= new
                patient_until = time.monotonic() + PATIENCE_SECONDS
        time.sleep(DUPLICATE_SECONDS)
        self._take(path)
        return arrived

    def _take(self, path: str) -> dict[str, float]:
        self._connection.request("GET", path)
        taken = json.load(self._connection.getresponse())
        result = self._seen.setdefault(path, set())
        for message_id, _ in taken:
            if message_id in result:
                raise NotMeasurable(f"{message_id} came twice to {path}")
            result.add(message_id)
        return dict(taken)


@contextmanager
def receiver(count: int = 1) -> Iterator[ReceiverProcess]:
    """Run endpoints. Each has its own port, because connections are kept by host and port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.receiver", str(count)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield ReceiverProcess(process)
    finally:
        process.kill()
        process.communicate()


class DeliveryBenchmark:
    """One instance, its merchants and their endpoints."""

    def __init__(self, stack: Stack, endpoints: ReceiverProcess) -> None:
        self.stack, self.receiver = stack, endpoints
        self._run_driver = partial(run_driver, stack)
        (self.merchant,) = self._run_driver("register", endpoints.url(0, HOOK))

    def candidates(self) -> list[Candidate[int, DeliveryRate]]:
        return [
            Candidate(OURS, self._deliver_batch),
            Candidate(BARE_LOOP, partial(self._post_bare, "post_by_requests")),
            Candidate(URLLIB3_LOOP, partial(self._post_bare, "post_by_urllib3")),
        ]

    def _deliver_batch(self, count: int) -> DeliveryRate:
        worker = self.stack.pids["webhooks"]
        before = processors.cpu_seconds(worker)
        _, drained = self._timed(count, HOOK, "publish_batch", count, self.merchant)
        return replace(drained, sender_us=_microseconds_each(count, before, processors.cpu_seconds(worker)))

    def _post_bare(self, command: str, count: int) -> DeliveryRate:
        path = f"/{command}"  # each loop posts the same messages, and the receiver notes repeated ones
        url = self.receiver.url(0, path)
        result, drained = self._timed(count, path, command, count, self.merchant, url)
        return replace(drained, sender_us=_microseconds_each(count, 0.0, result["cpu"]), postgres_us=None)

    def _timed(
        self, count: int, path: str, command: str, *arguments: object
    ) -> tuple[dict[str, float], DeliveryRate]:
        """Run the driver; return its answer, and the figures from its instant to the last arrival."""
        pids = self.stack.pids["postgres"], self.receiver.pid
        before = [processors.cpu_seconds(pid) for pid in pids]
        result = self._run_driver(command, *arguments)
        last = max(self.receiver.wait_for(path, count).values())
        used = [
            _microseconds_each(count, one, processors.cpu_seconds(pid))
            for one, pid in zip(before, pids, strict=True)
        ]
        return result, DeliveryRate(count / (last - result["at"]), None, *used)


def run_driver(stack: Stack, command: str, *arguments: object) -> Any:
    """Run a command of `bench/driver.py` in the instance; return its answer."""
    response = subprocess.check_output(
        [sys.executable, "-m", "bench.driver", command, *map(str, arguments)],
        cwd=ROOT,
        env={**stack.environ, **stack.env, "WEBHOOK_PROBE": "off"},
        text=True,
    )
    return json.loads(response)


def _microseconds_each(count: int, before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else 1e6 * (after - before) / count
