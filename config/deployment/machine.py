"""The machine on which the check runs: Python, time zone, disks."""

import shutil
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from config.deployment.findings import Finding, ok, problem, warning

OLDEST_PYTHON = (3, 11)
LOCAL_TIME = Path("/etc/localtime")
BANGKOK_OFFSET, UTC_OFFSET = "+0700", "+0000"
GB = 1_000_000_000
LEAST_FREE, LOW_FREE = 1 * GB, 5 * GB
# Uploads, and what PostgreSQL writes if it is here.
FOLDERS = ("/", tempfile.gettempdir(), "/var/lib/postgresql")


def findings() -> list[Finding]:
    return [
        python(sys.version_info[:3]),
        time_zone(*_local_time()),
        *(disk(folder, shutil.disk_usage(folder).free) for folder in _one_of_each_disk(FOLDERS)),
    ]


def python(version: tuple[int, ...]) -> Finding:
    shown = ".".join(map(str, version))
    if version < OLDEST_PYTHON:
        return problem("Python", shown, "Install Python 3.11 or newer.")
    return ok("Python", shown)


def time_zone(name: str, offset: str) -> Finding:
    """Timers of the machine run by it. The service itself does not use it."""
    if offset in (BANGKOK_OFFSET, UTC_OFFSET):
        return ok("time zone of the machine", name)
    advice = "Set UTC or Asia/Bangkok (timedatectl): nightly jobs must run after midnight in Bangkok."
    return warning("time zone of the machine", f"{name} ({offset})", advice)


def disk(folder: str, free: int) -> Finding:
    subject, found = f"disk of {folder}", f"{free / GB:.1f} GB free"
    if free < LEAST_FREE:
        return problem(subject, found, "Make room: PostgreSQL stops when its disk is full.")
    if free < LOW_FREE:
        return warning(subject, found, "Make room, or watch it: a million payments take about 14 GB.")
    return ok(subject, found)


def _local_time() -> tuple[str, str]:
    """The name and the offset of the machine's zone. Django gives this process another one."""
    try:
        with LOCAL_TIME.open("rb") as file:
            zone: tzinfo = ZoneInfo.from_file(file)
    except FileNotFoundError:
        zone = UTC
    name = str(LOCAL_TIME.resolve()).partition("zoneinfo/")[2] or "UTC"
    return name, f"{datetime.now(zone):%z}"


def _one_of_each_disk(folders: Iterable[str]) -> list[str]:
    existing = [folder for folder in folders if Path(folder).is_dir()]
    return sorted({Path(folder).stat().st_dev: folder for folder in reversed(existing)}.values())
