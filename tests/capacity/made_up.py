"""Figures that nobody measured, for tests of what is said about them."""

from collections import Counter
from typing import Any

from config.capacity.growth import Size
from config.capacity.lives import CREATE, LivesResult
from config.capacity.load import LoadResult
from config.capacity.measuring import Codes, Deliveries, Figures, Step
from config.capacity.sampling import LOG, ON_PROCESSOR, ProcessorSample, Samples

TICKS = range(10)


def samples(machine: float, sessions: dict[str, int] | None = None, **cores: float) -> Samples:
    """Ten equal samples."""
    counts = Counter(sessions or {ON_PROCESSOR: 1, LOG: 0})
    return Samples(
        [ProcessorSample(float(at), cores, machine) for at in TICKS], [(float(at), counts) for at in TICKS]
    )


def step(at_once: int, rate: int, taken: Samples) -> Step:
    """A step of ten seconds."""
    result = LivesResult(seconds=10.0, webhooks=[0.04] * rate * 10)
    for name, seconds in zip(result.requests, (0.02, 0.01, 0.003), strict=True):
        result.requests[name] = [seconds] * rate * 10
    assert CREATE in result.requests
    return Step(at_once, result, taken)


def figures(taken: Samples, **changes: Any) -> Figures:
    """4 cores, 2 web processes, 100 lives a second at best, 12 rows and 20 kB each."""
    codes = LoadResult(Counter({200: 1000}), [0.01] * 1000, seconds=5.0)
    made: dict[str, Any] = {
        "cores": 4,
        "web_workers": 2,
        "has_local_postgres": True,
        "commit_ms": 1.5,
        "steps": [step(1, 30, taken), step(4, 100, taken), step(16, 80, taken)],
        "deliveries": Deliveries(900.0, taken),
        "codes": Codes(codes, taken),
        "growth": Size(rows=24_000, bytes=40_000_000),
        "lives": 2_000,
        "samples": taken,
        "phases": [("warm-up", 0.0), ("1 at once", 2.0), ("deliveries", 6.0)],
    }
    return Figures(**(made | changes))
