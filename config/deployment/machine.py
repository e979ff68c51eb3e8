"""The machine on which the check runs: its clock and disks."""

import shutil
import tempfile
from pathlib import Path

from django.conf import settings

from config.deployment.findings import Finding, judge

# Beyond it codes expire minutes too early or too late, and signed messages of banks are refused.
MOST_SECONDS = 60.0
CLOCK_ADVICE = "Let one time service (chrony, systemd-timesyncd) set the clocks of both machines."
GB = 1_000_000_000
LEAST_FREE, LOW_FREE = 1 * GB, 5 * GB
# Uploads, and what PostgreSQL writes if it is here.
FOLDERS = ("/", tempfile.gettempdir(), "/var/lib/postgresql")


def findings() -> list[Finding]:
    """One for each disk."""
    disks = {Path(folder).stat().st_dev: folder for folder in reversed(FOLDERS) if Path(folder).is_dir()}
    return [disk(folder, shutil.disk_usage(folder).free) for folder in sorted(disks.values())]


def disk(folder: str, free: int) -> Finding:
    is_full = free < LEAST_FREE
    advice = "Make room, or watch it: a million payments take about 14 GB."
    if is_full:
        advice = "Make room: PostgreSQL stops when its disk is full."
    found = f"{free / GB:.1f} GB free"
    return judge(f"disk of {folder}", found, advice, is_problem=is_full, is_warning=free < LOW_FREE)


def compare_clock(subject: str, difference: float) -> Finding:
    """difference: the seconds by which that clock is ahead of this machine's."""
    return judge(
        subject,
        f"{difference:+.3f} s to this machine",
        CLOCK_ADVICE,
        is_problem=abs(difference) > MOST_SECONDS,
        is_warning=abs(difference) > settings.CLOCK_WARNING_SECONDS,
    )
