"""The units are valid, hardened, and start what the command line has."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from config.command_line import parser
from config.workers import WORKERS
from tests.stack import ROOT

UNITS = ROOT / "deploy" / "systemd"
BACKUPS = ROOT / "deploy" / "pgbackrest"
PATRONI = ROOT / "deploy" / "patroni"
PROGRAM = "/opt/thai-qr-payments/current/bin/thaiqr-server"
NAMES = sorted(path.name for path in UNITS.glob("*.service"))
BACKUP = "backup-thaiqr@full.service"
TIMERS = sorted(path.name for path in BACKUPS.glob("*.timer"))
TARGETS = [
    "sysinit", "basic", "shutdown", "multi-user", "sockets", "timers", "network-online", "time-set",
    "time-sync",
]  # fmt: skip
# What systemd-analyze calls the exposure of a service, times ten: 0 is the least, and 100 the most.
MOST_EXPOSURE = 14
# Backups run as postgres, and may write into the place of the backups, which each operator chooses.
MOST_EXPOSURE_OF_BACKUPS = 20


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A system with the units, the user and the program."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed (on Debian: apt install systemd)")
    folder = tmp_path_factory.mktemp("root")
    for units in (UNITS, BACKUPS, PATRONI):
        shutil.copytree(units, folder / "etc" / "systemd" / "system", dirs_exist_ok=True)
    for name in TARGETS:
        target = folder / "usr" / "lib" / "systemd" / "system" / f"{name}.target"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("[Unit]\nDescription=of the test\n")
    for name in (PROGRAM, "/usr/bin/pgbackrest", "/bin/sh"):
        program = folder / name.removeprefix("/")
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    return folder


def instance(name: str) -> str:
    return name.replace("@.", "@banks.")


def analyze(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = ["systemd-analyze", f"--root={root}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_systemd_accepts_the_units(root: Path) -> None:
    workers = [f"thaiqr-worker@{name}.service" for name in WORKERS]
    units = ["thaiqr-web.socket", *map(instance, NAMES), *workers, BACKUP, *TIMERS]
    done = analyze(root, "verify", "--man=no", *units)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "most"), [*((name, MOST_EXPOSURE) for name in NAMES), (BACKUP, MOST_EXPOSURE_OF_BACKUPS)]
)
def test_exposure_of_each_service_is_low(root: Path, name: str, most: int) -> None:
    done = analyze(root, "security", "--offline=true", f"--threshold={most}", instance(name))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_command_of_each_service_exists(name: str) -> None:
    (line,) = [line for line in (UNITS / name).read_text().splitlines() if line.startswith("ExecStart=")]
    program, *arguments = line.removeprefix("ExecStart=").replace("%i", "banks").split()
    assert program == PROGRAM
    assert parser().parse_args(arguments).run


def test_unit_of_workers_names_each_kind_of_worker() -> None:
    text = (UNITS / "thaiqr-worker@.service").read_text()
    assert all(f"thaiqr-worker@{name}" in text for name in WORKERS)


def test_only_the_worker_of_nightly_jobs_may_write_where_the_installation_puts_statements() -> None:
    """`make drill-install` writes there as the worker does."""
    program = (ROOT / "config" / "deployment" / "install.py").read_text()
    folders = set(re.findall(r'"STATEMENTS_DIR": "/var/lib/([^"]+)"', program))
    assert len(folders) == 1
    written = {
        path.parent.name: line.partition("=")[2]
        for path in UNITS.rglob("*.conf")
        for line in path.read_text().splitlines()
        if line.startswith(("StateDirectory=", "ReadWritePaths="))
    }
    assert written == {"thaiqr-worker@default.service.d": folders.pop()}


def test_only_migrate_reads_the_file_with_the_address_for_the_owner() -> None:
    units = [path for path in UNITS.rglob("*") if path.is_file()]
    assert [path.name for path in units if "migration.env" in path.read_text()] == ["thaiqr-migrate.service"]


def test_backups_do_not_get_the_user_and_limits_of_the_service() -> None:
    """`thaiqr-.service.d` is for each unit whose name begins so."""
    units = [path.name for path in BACKUPS.iterdir()]
    assert not [name for name in units if name.startswith("thaiqr-")]
