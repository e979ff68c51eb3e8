"""A web server around a test application, and whole instances."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from config.devstack import ports
from config.devstack.instance import wipe
from tests.stack import ROOT, Stack, wait_until


@dataclass(frozen=True)
class WebServer:
    port: int
    process: "subprocess.Popen[bytes]"


@contextmanager
def serving() -> Iterator[WebServer]:
    """The real web server around `tests.systems.devstack.echo`."""
    port = ports.pick()
    process = subprocess.Popen(
        [sys.executable, "-m", "config.server", "tests.systems.devstack.echo:application"],
        cwd=ROOT,
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _listens(port) or process.poll() is not None, 60)
        assert process.poll() is None
        yield WebServer(port, process)
    finally:
        process.terminate()
        process.wait(60)


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection((ports.LOOPBACK, port), timeout=10):
        return True
    return False


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    with serving() as server:
        yield server


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """An instance as `make run` starts it."""
    with Stack(tmp_path_factory.mktemp("instance") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def second_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A second instance, which tests start and stop. Only its first start creates the database."""
    spare = Stack(tmp_path_factory.mktemp("spare") / "data")
    yield spare
    spare.stop()
    wipe(spare.folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder that does not exist yet."""
    return tmp_path / "data"
