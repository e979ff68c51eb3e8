"""A worker that is killed by SIGKILL while it stores a file."""

import gzip
import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models.functions import Now

from console.exports import jobs
from console.models import Export, ExportPart
from core import clock, rows
from core.background_jobs import JobState
from tests.conftest import Shop
from tests.stack import ROOT, wait_until
from tests.tables import LOCKS

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
# Within a transaction, pg_stat_activity stays as it was at the first look.
WAITING = f"SELECT count(*) FROM {LOCKS} WHERE NOT granted AND relation = 'console_exportpart'::regclass"
RUN = "import django; django.setup(); from console.exports import jobs; jobs.run_due()"


def start_worker() -> "subprocess.Popen[bytes]":
    """Run the next export in a process of its own on this test's database."""
    given, ours = os.environ["DATABASE_URL"], connection.settings_dict["NAME"]
    environ = os.environ | {"DATABASE_URL": f"{given.rsplit('/', 1)[0]}/{ours}"}
    environ["FIELD_ENCRYPTION_KEYS"] = ",".join(settings.FIELD_ENCRYPTION_KEYS)
    environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    return subprocess.Popen([sys.executable, "-c", RUN], cwd=ROOT, env=environ, stdout=subprocess.DEVNULL)


def test_killed_worker_leaves_no_half_file(shop: Shop) -> None:
    shop.qr_code(amount=100, reference="table 5")
    owner = User.objects.create_superuser("owner")
    export = jobs.ask(owner, list="payments.payment", query="", file_type="csv", now=clock.now())
    with transaction.atomic():
        rows.run("LOCK TABLE console_exportpart IN SHARE MODE", [])
        worker = start_worker()
        wait_until(lambda: rows.run(WAITING, []).fetchone() == (1,), 60)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    wait_until(lambda: rows.run(OTHERS, []).fetchone() == (0,), 60)
    export.refresh_from_db()
    assert (export.state, ExportPart.objects.count()) == (JobState.RUNNING, 0)
    Export.objects.update(lease_until=Now() - timedelta(seconds=1))
    assert jobs.run_due() == 1
    export.refresh_from_db()
    assert (export.state, export.attempts) == (JobState.DONE, 2)
    [part] = export.parts.all()
    assert "table 5" in gzip.decompress(bytes(part.content)).decode()
