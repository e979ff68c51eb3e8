"""`thaiqr-server doctor`: what a person who helps has to know, on one page.

It has no secrets and no personal data: of settings that may hold them it says only that they are set.
"""

import platform
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.db import DatabaseError, InterfaceError

from config.deployment import check, findings
from config.deployment.findings import Level
from config.env import env
from core import clock
from operations.metrics.families import PREFIX
from operations.metrics.view import DatabaseCollector
from operations.models import JobRun, ProcessReport

# A row of docs/settings.md: name, whether it is a secret (`file`), default, unit.
SETTING = re.compile(r"^\| `([A-Z_]+)` \| (file)? *\| [^|]* \| ([^|]*) \|", re.M)
MAY_HOLD_SECRETS = {"URL", "key", "keys", "address"}
BACKUPS = ("backup-thaiqr@full", "backup-thaiqr@incr")


def examine() -> dict[str, Any]:
    """By title. What is wrong comes first; what waits are metrics that are not zero."""
    found = check.run(1, 1)
    return {
        "at": clock.iso(clock.now()),
        "findings": sorted(found, key=lambda each: list(Level).index(each.level), reverse=True),
        "versions": dict(_versions()),
        "settings": dict(_settings()),
        "queues, clocks and what waits": dict(_waiting()),
        "last nightly jobs": dict(_jobs()),
        "last backups": dict(_backups()),
    }


def as_text(page: dict[str, Any]) -> str:
    at, found, *_ = page.values()
    text = f"Thai QR Payments, {at}\n\n== What is wrong, and what to do\n{findings.as_text(found)}"
    for title, values in list(page.items())[2:]:
        lines = "".join(f"{name:<48}  {value}\n" for name, value in values.items())
        text += f"\n== {title.capitalize()}\n{lines}"
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
            found = f"{run.result.value}, {run.differences or 0} differences {run.error}".strip()
            yield run.job, f"began {clock.iso(run.started_at)}: {found}"


def _backups() -> Iterator[tuple[str, str]]:
    """By the units of systemd, if this machine has them. PostgreSQL's archive is among the findings."""
    with suppress(OSError):
        for name in BACKUPS:
            if last := _property(f"{name}.timer", "LastTriggerUSec"):
                yield name, f"{last}: {_property(f'{name}.service', 'Result')}"


def _property(unit: str, name: str) -> str:
    command = ["systemctl", "show", "--property", name, "--value", unit]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603
