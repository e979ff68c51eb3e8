"""Pytest plugin: in which order the tests run, and which of them share a process."""

import gc
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

# Tests of such a folder share an instance.
SHARED_INSTANCE_FOLDERS = {
    "tests/browser",
    "tests/flows",
    "tests/systems/browser",
    "tests/systems/clients",
    "tests/systems/deployment",
    "tests/systems/devstack",
    "tests/systems/faults",
}

# These take minutes each, so short files come last. A worker of xdist takes its next file when two tests are
# left, so a file of one or two long tests keeps the next one waiting: such files come early.
SLOWEST_FIRST = [
    "tests/flows/",
    "tests/browser/",
    "tests/counts/",
    "tests/reconciliation/",
    "tests/console/",
    "tests/state_machine/",
    "tests/operations/",
    "tests/test_hostile_inputs_raw.py",
    # With the measured times of each file, this order ends within 45 s of an even share of four workers.
    "tests/systems/faults/",
    "tests/systems/failover/",
    "tests/systems/restores/",
    "tests/systems/devstack/",
    "tests/systems/deployment/",
    "tests/systems/chaos/",
    "tests/systems/clients/",
    "tests/systems/console/",
    "tests/systems/browser/",
    "tests/systems/openapi/",
    "tests/systems/medusa/",
    "tests/systems/contributing/",
    "tests/systems/replica/",
    "tests/systems/volume/",
    "tests/systems/migrations/",
    "tests/systems/pgbouncer/",
]

# How many new objects start a garbage collection. With Python's 700 it takes a tenth of all tests.
NEW_OBJECTS = 20_000

# For a value of `-m`, what is in each file with tests for it. In files of the last one all tests are slow.
FILES_BY_MARKERS = {
    "slow": re.compile(r"mark\.slow"),
    "alone": re.compile(r"mark\.alone"),
    "not slow": re.compile(r"\A(?!.*^pytestmark = \[?\s*pytest\.mark\.slow\b)", re.MULTILINE | re.DOTALL),
}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files without tests that `-m` asks for. Collecting all takes 6 s of CPU per process."""
    needed = FILES_BY_MARKERS.get(config.getoption("markexpr"))
    if needed is None or not collection_path.match("test_*.py"):
        return None
    return needed.search(collection_path.read_text()) is None or None


class _ByInstance(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Tests of one file, and of one folder where they share an instance, run in one of xdist's workers."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        folder = file.rpartition("/")[0]
        return folder if folder in SHARED_INSTANCE_FOLDERS else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return _ByInstance(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by folder, the longest first. The others keep the order of pytest-django."""

    def place(item: pytest.Item) -> int:
        places = [at for at, path in enumerate(SLOWEST_FIRST) if item.nodeid.startswith(path)]
        return places[0] if places else len(SLOWEST_FIRST)

    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude tests and modules from garbage collection: they live until the end. Then collect less often."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(NEW_OBJECTS, 20, 20)
