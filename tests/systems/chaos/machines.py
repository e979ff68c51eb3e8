"""Machines with one database and one Valkey: on each a web server, three workers, beat and a sandbox bank."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from config.env import OWNER_URL
from tests.patroni import Cluster
from tests.stack import Stack

WRONG_CLOCK = Path(__file__).parent / "wrong_clock"
# Ahead and behind, in seconds, as machines whose clocks are not set well.
OFFSETS = ("+2", "-2")
SHARED = (
    "DATABASE_URL", OWNER_URL, "REDIS_URL", "SECRET_KEY", "IDEMPOTENCY_KEYS", "FIELD_ENCRYPTION_KEYS",
    "SANDBOX_BANK_SECRET",
)  # fmt: skip
SETTINGS = {
    "RATE_LIMIT": "0",
    "WEB_WORKERS": "1",
    "SEPARATE_WORKERS": "1",
    "WEBHOOK_TIMEOUT_SECONDS": "10",
    "SPEEDUP": "10",
    "SYNCHRONOUS_STANDBY": "1",
}


@contextmanager
def three_machines(folder: Path, cluster: Cluster) -> Iterator[Sequence[Stack]]:
    """Run three machines. The first one has Valkey; the clocks of the others are wrong."""
    with ExitStack() as ending:
        first = ending.enter_context(Stack(folder / "first", **SETTINGS, **cluster.urls))
        cluster.wait_for_standby()
        shared = {name: first.env[name] for name in SHARED if name in first.env}
        # One after the other: a machine ends with the thread that started it.
        others = [
            ending.enter_context(Stack(folder / f"clock{offset}", **SETTINGS, **shared, **_clock(offset)))
            for offset in OFFSETS
        ]
        yield [first, *others]


def _clock(offset: str) -> dict[str, str]:
    return {"PYTHONPATH": str(WRONG_CLOCK), "CLOCK_OFFSET": offset}
