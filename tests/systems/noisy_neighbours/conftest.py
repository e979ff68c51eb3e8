"""One instance with a misbehaving client and a neighbour, whose response time is measured."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path

import pytest

from tests.stack import ROOT, Stack, wait_until

# The defects that these tests look for cost seconds. The clients and servers share the machine, which adds
# tens of milliseconds. So response times below this are not a failure.
NOISE_SECONDS = 0.1
TIMES = 3
REQUESTS = 60
# A busy machine slows down one round; a defect slows down all rounds. So the first quick round ends the test.
ROUNDS = 3

Misbehave = Callable[[threading.Event], None]


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder: Path = tmp_path_factory.mktemp("instance") / "data"
    with Stack.on_shared_server(folder) as running:
        wait_until(running.is_ready, 180)
        yield running


@pytest.fixture
def neighbour(stack: Stack) -> "Neighbour":
    made = json.loads(stack.manage("create_merchant", "--name", "Neighbour", "--mode", "test", "--json"))
    return Neighbour(stack.base_url, made["secret_key"])


@dataclass
class Neighbour:
    """A merchant that does nothing wrong and asks for its balance."""

    base_url: str
    secret_key: str

    def p95(self) -> float:
        """The 95th percentile of the response times for the balance, in seconds."""
        shown = {"base_url": self.base_url, "secret_key": self.secret_key, "requests": REQUESTS}
        command = [sys.executable, "-m", "tests.systems.noisy_neighbours.client"]
        done = subprocess.run(
            command, input=json.dumps(shown), cwd=ROOT, capture_output=True, text=True, check=True
        )
        return quantile(json.loads(done.stdout), 0.95)

    def is_undisturbed_by(
        self, misbehave: Misbehave, *, clients: int, until: Callable[[], bool] = lambda: True
    ) -> None:
        """Measure without and with `clients` threads that run `misbehave`."""
        check_undisturbed(self.p95, misbehave, clients=clients, until=until)


def check_undisturbed(
    measure: Callable[[], float],
    misbehave: Misbehave,
    *,
    clients: int,
    until: Callable[[], bool] = lambda: True,
) -> None:
    """Fail if the seconds that `measure` returns grow by more than three times while others misbehave.

    until: whether the others have misbehaved enough. If not, one round more is measured, up to ROUNDS; on a
    slow machine they go on after that.
    """
    normal = measure()
    allowed = max(TIMES * normal, NOISE_SECONDS)
    disturbed: list[float] = []
    with running(misbehave, clients):
        while len(disturbed) < ROUNDS and not (min(disturbed, default=inf) <= allowed and until()):
            disturbed.append(measure())
        wait_until(until, 120)
    print(f"alone {normal * 1000:.1f} ms, beside {[round(one * 1000, 1) for one in disturbed]}")  # noqa: T201
    assert min(disturbed) <= allowed, (normal, disturbed)


@contextmanager
def running(misbehave: Misbehave, clients: int) -> Iterator[None]:
    """Run `misbehave(stopped)` in threads until the block ends. An exception in a thread fails the test."""
    stopped = threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            misbehave(stopped)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        for thread in threads:
            thread.join(60)
    assert not failures, failures


def quantile(taken: list[float], share: float) -> float:
    """The quantile of the values, such as 0.95."""
    ordered = sorted(taken)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
