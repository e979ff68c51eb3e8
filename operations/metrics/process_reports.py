"""What each process reports of itself every ten seconds: what it measured, its memory, files and version.

Web, workers and beat start a thread for it. The numbers of all processes are added in the database, so
`/metrics` of any web process shows all. A killed process loses what it measured in its last ten seconds.
"""

import json
import logging
import os
import socket
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from prometheus_client import ProcessCollector

from core import clock
from core.database import rows
from core.observing import measurements
from core.observing.measurements import Key
from operations.models import ProcessReport

log = logging.getLogger("process_reports")
REPORT_SECONDS = 10.0
# The report of a process that was silent for so long is deleted.
SILENT_AFTER = timedelta(seconds=60)
_ADD = """
INSERT INTO operations_measurement AS t (name, labels, bucket, count, seconds)
SELECT * FROM unnest(%s::text[], %s::text[], %s::smallint[], %s::bigint[], %s::float8[])
ON CONFLICT (name, labels, bucket) DO UPDATE
    SET count = t.count + EXCLUDED.count, seconds = t.seconds + EXCLUDED.seconds
"""


class Reporter(threading.Thread):
    """Reports for this process, named for example `web-0` or `beat`, until it ends."""

    def __init__(self, process: str) -> None:
        super().__init__(name="process reports", daemon=True)
        self.process = process
        self._is_ending = threading.Event()
        self._reporting = threading.Lock()

    def stop(self) -> None:
        """Report once more, and remove the row of this process."""
        self._is_ending.set()
        self.report(is_last=True)

    def run(self) -> None:
        """ALIVE_FILE shows life without a database, too: a restart would not bring the database back."""
        is_ending = False
        while not is_ending:
            if settings.ALIVE_FILE:
                Path(settings.ALIVE_FILE).touch()
            self.report()
            is_ending = self._is_ending.wait(REPORT_SECONDS)

    def report(self, *, is_last: bool = False) -> None:
        """Store everything in one commit. Without a database the numbers wait for the next time."""
        with self._reporting:
            taken = measurements.OF_PROCESS.take()
            try:
                with transaction.atomic():
                    add(taken)
                    _store_process(self.process, clock.now(), is_last=is_last)
            except (DatabaseError, InterfaceError) as error:
                measurements.OF_PROCESS.put_back(taken)
                log.warning("The process did not report: %s", type(error).__name__)
            finally:
                # A connection for a statement every ten seconds would take a place of `max_connections`.
                connection.close()


def add(taken: dict[Key, tuple[int, float]]) -> None:
    # In one order, so that two processes cannot deadlock.
    added = [
        (key.name, json.dumps(key.labels), key.bucket, count, seconds)
        for key, (count, seconds) in sorted(taken.items())
    ]
    if added:
        rows.run(_ADD, [list(column) for column in zip(*added, strict=True)])


def _store_process(process: str, now: datetime, *, is_last: bool) -> None:
    host, pid = socket.gethostname()[:64], os.getpid()
    known = ProcessReport.objects.filter(host=host, pid=pid)
    ProcessReport.objects.filter(reported_at__lt=now - SILENT_AFTER).delete()
    if is_last:
        known.delete()
        return
    found = {sample.name: sample.value for each in _system.collect() for sample in each.samples}
    values = {
        "process": process[:40],
        "version": settings.VERSION[:40],
        "reported_at": now,
        "started_at": datetime.fromtimestamp(found.get("process_start_time_seconds", 0), UTC),
        "memory_bytes": int(found.get("process_resident_memory_bytes", 0)),
        "open_files": int(found.get("process_open_fds", 0)),
        "max_files": int(found.get("process_max_fds", 0)),
        "processor_seconds": found.get("process_cpu_seconds_total", 0.0),
    }
    ProcessReport.objects.update_or_create(host=host, pid=pid, defaults=values)


_system = ProcessCollector(registry=None)
