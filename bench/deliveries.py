"""Webhook deliveries a second, of the service and of a bare loop."""

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from bench.cost import Cost
from bench.http import Endpoint, NotMeasurable, header
from bench.rounds import OURS, RATE, Candidate, Figures, run_rounds
from bench.stack import ROOT, DetachedStack

BARE_LOOP = "(c) bare loop, requests"
WARM_UP_MESSAGES, MESSAGES = 500, 2000
PATIENCE_SECONDS, POLL_SECONDS = 20.0, 0.05
# Wait so long for repeated messages after all have arrived.
DUPLICATE_SECONDS = 0.3


def measure(stack: DetachedStack, rounds: int) -> list[Candidate]:
    """Raises NotMeasurable."""
    benchmark = _DeliveryBenchmark(stack)
    candidates = [
        Candidate(OURS, lambda count: benchmark.play(count, "publish")),
        Candidate(BARE_LOOP, lambda count: benchmark.play(count, "post", f"{benchmark.endpoint.url}/bare")),
    ]
    with benchmark.endpoint.runner:
        run_rounds("deliver", candidates, warm_up=WARM_UP_MESSAGES, extent=MESSAGES, rounds=rounds)
    return candidates


class _DeliveryBenchmark:
    """A merchant of the instance and its endpoint. The bare loop posts the same messages to another path."""

    def __init__(self, stack: DetachedStack) -> None:
        self._stack = stack
        # The instant of each message, in the order of arrival.
        self._arrived: dict[tuple[bytes, bytes], float] = {}
        self._is_repeated = False
        self.endpoint = Endpoint(self._take)
        self._merchant_id = self._run("register", self.endpoint.url)

    def play(self, count: float, command: str, *urls: str) -> Figures:
        """Run the driver; return the figures from its instant to the last arrival."""
        cost, goal = Cost(self._stack, {self._stack.pids["webhooks"]: "webhooks"}), len(self._arrived) + count
        result = self._run(command, int(count), self._merchant_id, *urls)
        self.endpoint.runner.run(self._wait_for(goal))
        bare = {"webhooks us": 1e6 * result["cpu"] / count} if "cpu" in result else {}
        *_, last = self._arrived.values()
        return {RATE: count / (last - result["at"]), **cost.each(count), **bare}

    def _run(self, command: str, *arguments: object) -> Any:
        environ = {**self._stack.environ, **self._stack.env}
        return self.endpoint.runner.run(run_driver(environ, command, *arguments))

    async def _wait_for(self, goal: float) -> None:
        """Return when so many messages have arrived, each once. Raises NotMeasurable."""
        arrived, patient_until = len(self._arrived), time.monotonic() + PATIENCE_SECONDS
        while len(self._arrived) < goal:
            if arrived < len(self._arrived):
                arrived, patient_until = len(self._arrived), time.monotonic() + PATIENCE_SECONDS
            if time.monotonic() > patient_until:
                raise NotMeasurable(f"{goal - arrived} messages are missing")
            await asyncio.sleep(POLL_SECONDS)
        await asyncio.sleep(DUPLICATE_SECONDS)
        if self._is_repeated or len(self._arrived) > goal:
            raise NotMeasurable("A message came twice, or one that nobody expects.")

    def _take(self, head: bytes, body: bytes) -> None:
        key = head.split(b" ", 2)[1], header(head, b"webhook-id")
        self._is_repeated |= key in self._arrived
        self._arrived[key] = time.time()


async def run_driver(environ: Mapping[str, str], command: str, *arguments: object) -> Any:
    """Run a command of `bench/driver.py` with these settings; return its answer. Raises NotMeasurable."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.driver", command, json.dumps(arguments)),
        cwd=ROOT,
        env={**environ, "WEBHOOK_PROBE": "off"},
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    if process.returncode:
        raise NotMeasurable(f"bench.driver {command} failed.")
    return json.loads(printed)
