"""Webhook deliveries: how many a second, how long after the commit, and what a slow endpoint changes."""

import http.client
import json
import statistics
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

# Each endpoint has its own port, because connections are kept by host and port.
HEALTHY_ENDPOINTS, SOME_ENDPOINTS = 100, 20
HOOK, SLOW_HOOK = "/hook", "/after/10"
BARE_LOOP, URLLIB3_LOOP = "(c) bare loop, requests", "(d) bare loop, urllib3"
WITHOUT_SLOW, BESIDE_SLOW = "50 a second to 100", "the same beside a slow one"
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


@dataclass(frozen=True)
class DeliveryLatencies:
    """Milliseconds from commit to arrival, and the 95th percentile of the delay of publications."""

    latencies: list[float]
    publish_delay_ms: float

    def quantile(self, share: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


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
def receiver(count: int = HEALTHY_ENDPOINTS + 2) -> Iterator[ReceiverProcess]:
    """Run the endpoints: ports 0 to 99 are healthy, the next is slow, the last is for the delivery rate."""
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
        urls = [endpoints.url(number, HOOK) for number in range(HEALTHY_ENDPOINTS)]
        others = [endpoints.url(HEALTHY_ENDPOINTS, SLOW_HOOK), endpoints.url(HEALTHY_ENDPOINTS + 1, HOOK)]
        *self.merchants, self.slow, self.merchant = self._run_driver("register", *urls, *others)

    def candidates(self) -> list[Candidate[int, DeliveryRate]]:
        return [
            Candidate(OURS, self._deliver_batch),
            Candidate(BARE_LOOP, partial(self._post_bare, "post_by_requests")),
            Candidate(URLLIB3_LOOP, partial(self._post_bare, "post_by_urllib3")),
        ]

    def measure_latency(self, rate: int, seconds: int, endpoints: int) -> DeliveryLatencies:
        """Publish for some of the healthy endpoints at a steady rate. Raises NotMeasurable."""
        result = self._run_driver("publish_steadily", rate, seconds, *self.merchants[:endpoints])
        committed: dict[str, float] = result["committed"]
        arrived = self.receiver.wait_for(HOOK, len(committed))
        if arrived.keys() != committed.keys():
            raise NotMeasurable("What came is not what was published.")
        latencies = [1000 * (arrived[each] - at) for each, at in committed.items()]
        return DeliveryLatencies(latencies, 1000 * statistics.quantiles(result["late"], n=20)[-1])

    def fill_slow_endpoint(self, backlog: int) -> None:
        """Publish the backlog for the slow endpoint, and wait until the first message arrives."""
        self._run_driver("publish_batch", backlog, self.slow)
        self.receiver.wait_for(SLOW_HOOK, 1)

    def _deliver_batch(self, count: int) -> DeliveryRate:
        worker = self.stack.pids["webhooks"]
        before = processors.cpu_seconds(worker)
        _, drained = self._timed(count, HOOK, "publish_batch", count, self.merchant)
        return replace(drained, sender_us=_microseconds_each(count, before, processors.cpu_seconds(worker)))

    def _post_bare(self, command: str, count: int) -> DeliveryRate:
        path = f"/{command}"  # each loop posts the same messages, and the receiver notes repeated ones
        url = self.receiver.url(HEALTHY_ENDPOINTS + 1, path)
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
        # The slow endpoint would not answer a probe in time.
        env={**stack.environ, **stack.env, "WEBHOOK_PROBE": "off"},
        text=True,
    )
    return json.loads(response)


def _microseconds_each(count: int, before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else 1e6 * (after - before) / count
