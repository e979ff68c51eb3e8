"""Ask a server the same question for a while."""

import itertools

from bench import load
from bench.comparison import NotMeasurable

# Milliseconds.
Latencies = list[float]
# By the name of the question.
Measured = dict[str, Latencies]


def ask(port: int, latencies: Measured, name: str, request: bytes, seconds: float) -> None:
    result = load.run(port, itertools.repeat(request), connections=1, seconds=seconds)
    if set(result.statuses) != {200}:
        raise NotMeasurable(f"{name}: {dict(result.statuses)}, first {result.first_refusal!r}")
    latencies.setdefault(name, []).extend(1000 * each for each in result.latencies)
