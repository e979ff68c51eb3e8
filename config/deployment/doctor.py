"""`thaiqr-server doctor`: what a person who helps has to know, on one page.

It has no secrets and no personal data: of settings that may hold them it says only that they are set.
"""

import platform
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.db import DatabaseError, InterfaceError

from config.deployment import check, findings
from config.deployment.findings import Finding, Level
from config.env import env
from core import clock
from operations.metrics.families import PREFIX
from operations.metrics.view import DatabaseCollector
from operations.models import JobRun, ProcessReport

# A row of docs/settings.md: name, whether it is a secret (`file`), default, unit.
SETTING = re.compile(r"^\| `([A-Z_]+)` \| (file)? *\| [^|]* \| ([^|]*) \|", re.M)
MAY_HOLD_SECRETS = {"URL", "key", "keys", "address"}
BACKUPS = ("backup-thaiqr@full", "backup-thaiqr@incr")


@dataclass(frozen=True, slots=True)
class Page:
    """What `examine` found. waiting: metrics that are not zero, by their names with labels."""

    at: str
    versions: Mapping[str, str]
    settings: Mapping[str, str]
    waiting: Mapping[str, float]
    jobs: Mapping[str, str]
    backups: Mapping[str, str]
    findings: list[Finding]


def examine() -> Page:
    now, found = clock.now(), check.run(1, 1)
    return Page(
        clock.iso(now),
        dict(_versions()),
        dict(_settings()),
        dict(_waiting()),
        dict(_jobs()),
        dict(_backups()),
        sorted(found, key=lambda each: list(Level).index(each.level), reverse=True),
    )


def as_text(page: Page) -> str:
    """What is wrong comes first."""
    sections = {
        "Versions": page.versions,
        "Settings that are set": page.settings,
        "Queues, clocks and what waits": page.waiting,
        "Last nightly jobs": page.jobs,
        "Last backups": page.backups,
    }
    text = (
        f"Thai QR Payments, {page.at}\n\n== What is wrong, and what to do\n{findings.as_text(page.findings)}"
    )
    for title, values in sections.items():
        lines = "".join(f"{name:<48}  {value}\n" for name, value in values.items())
        text += f"\n== {title}\n" + (lines or "nothing\n")
    return text


def _versions() -> Iterator[tuple[str, str]]:
    yield "service", settings.VERSION
    with suppress(OSError):
        yield "system", platform.freedesktop_os_release()["PRETTY_NAME"]
    yield "Python", platform.python_version()
    yield "Django", django.get_version()
    with suppress(DatabaseError, InterfaceError):
        running = Counter(ProcessReport.objects.values_list("process", "version"))
        for (process, version), number in sorted(running.items()):
            yield f"running: {process}", f"{version} ({number})"


def _settings() -> Iterator[tuple[str, str]]:
    for name, secret, unit in SETTING.findall(Path(settings.BASE_DIR, "docs", "settings.md").read_text()):
        if value := env.ENVIRON.get(name):
            yield name, "set" if secret or unit in MAY_HOLD_SECRETS else value


def _waiting() -> Iterator[tuple[str, float]]:
    """Gauges only: how often something happened in all its time does not help here."""
    for family in DatabaseCollector().collect():
        if family.type == "gauge" and not family.name.startswith(f"{PREFIX}process_"):
            for sample in family.samples:
                if sample.value:
                    labels = ",".join(sample.labels.values())
                    name = sample.name.removeprefix(PREFIX)
                    yield f"{name}{{{labels}}}" if labels else name, round(sample.value, 3)


def _jobs() -> Iterator[tuple[str, str]]:
    with suppress(DatabaseError, InterfaceError):
        for run in JobRun.objects.newest_of_each_job():
            if run.ended_at is None:
                result = "not ended"
            else:
                result = run.error or f"{run.differences or 0} differences, {run.seconds or 0:.1f} s"
            yield run.job, f"began {clock.iso(run.started_at)}: {result}"


def _backups() -> Iterator[tuple[str, str]]:
    """By the units of systemd, if this machine has them. PostgreSQL's archive is among the findings."""
    with suppress(OSError):
        for name in BACKUPS:
            last = _property(f"{name}.timer", "LastTriggerUSec")
            if last:
                yield name, f"{last}: {_property(f'{name}.service', 'Result')}"


def _property(unit: str, name: str) -> str:
    command = ["systemctl", "show", "--property", name, "--value", unit]
    done: Any = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return str(done.stdout).strip()
