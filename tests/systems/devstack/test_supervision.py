"""The supervisor replaces children that end, and leaves no process behind when it ends itself."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import requests

from config.devstack.postgres import SHUTDOWN_SECONDS
from tests.stack import ROOT, Stack, wait_until

pytestmark = pytest.mark.slow
CHILDREN = ["web", "worker", "bank", "valkey", "postgres"]


# Keeps a program that fails at once, until it has started five times.
FAILING = """
import sys
from pathlib import Path
from config.devstack.programs import Program
from config.devstack.supervisor import Supervisor
starts = Path(sys.argv[1], "starts")
supervisor = Supervisor(Path(sys.argv[1], "pids.json"))
supervisor.keep(Program("failing", ["sh", "-c", f"echo >> {starts}; exit 1"]))
supervisor.wait_until(lambda: starts.exists() and starts.stat().st_size == 5, 60, "failing")
"""


def start_another(stack: Stack, **settings: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "config.devstack"]
    environ = {**stack.environ, **settings}
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", CHILDREN)
def test_killed_child_process_is_restarted(stack: Stack, name: str) -> None:
    stack.restart(name)
    wait_until(stack.is_ready, 60)


def test_program_that_fails_at_once_is_restarted_after_growing_pauses(tmp_path: Path) -> None:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", FAILING, tmp_path], cwd=ROOT, check=True)
    assert time.monotonic() - began > 0.2 + 0.4 + 0.8 + 1.6


def test_data_folder_in_use_is_refused(stack: Stack) -> None:
    refused = start_another(stack, PORT="0")
    assert (refused.returncode, "DATA_DIR" in refused.stderr) == (1, True)


def test_port_in_use_is_refused_at_start(stack: Stack, folder: Path) -> None:
    refused = start_another(stack, DATA_DIR=str(folder))
    assert refused.returncode == 1
    assert f"Port {stack.port} is in use" in refused.stderr


def test_two_instances_run_side_by_side(stack: Stack, second_stack: Stack) -> None:
    second_stack.start()
    assert second_stack.secret_key != stack.secret_key
    assert requests.get(f"{second_stack.base_url}/healthz", timeout=60).ok
    assert requests.get(f"{stack.base_url}/healthz", timeout=60).ok
    second_stack.stop()


def test_killed_supervisor_leaves_no_processes_and_keeps_the_data(second_stack: Stack) -> None:
    second_stack.start()
    before = second_stack.demo
    os.kill(second_stack.process.pid, signal.SIGKILL)
    second_stack.process.wait()
    wait_until(lambda: not second_stack.leftovers(), 60)
    second_stack.start()
    assert second_stack.demo == before
    assert "merchants" in second_stack.manage("showmigrations", "merchants")
    second_stack.stop()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_instance_leaves_no_processes(second_stack: Stack, number: signal.Signals) -> None:
    second_stack.start()
    assert second_stack.stop(number) < SHUTDOWN_SECONDS
    assert second_stack.leftovers() == []
    assert not (second_stack.folder / "pids.json").exists()


def test_files_are_readable_by_the_owner_only(stack: Stack) -> None:
    for name in ("instance.json", "instance.env", "lock", "pids.json", "access.log"):
        assert (stack.folder / name).stat().st_mode & 0o077 == 0
