"""A worker that is killed by SIGKILL while it stores a file."""

import gzip
import signal
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from console.exports import jobs
from console.models import Export, ExportPart
from core import clock
from core.database import rows
from core.work.background_jobs import JobState
from tests import killed_worker
from tests.conftest import Shop
from tests.stack import wait_until
from tests.tables import LOCKS

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
# Within a transaction, pg_stat_activity stays as it was at the first look.
WAITING = f"SELECT count(*) FROM {LOCKS} WHERE NOT granted AND relation = 'console_exportpart'::regclass"
RUN = "from console.exports import jobs; jobs.run_due()"


def test_killed_worker_leaves_no_half_file(shop: Shop) -> None:
    shop.qr_code(amount=100, reference="table 5")
    owner = User.objects.create_superuser("owner")
    export = jobs.ask(owner, list="payments.payment", query="", file_type="csv", now=clock.now())
    with transaction.atomic():
        rows.run("LOCK TABLE console_exportpart IN SHARE MODE", [])
        worker = killed_worker.start(RUN)
        wait_until(lambda: rows.run(WAITING, []).fetchone() == (1,), 60)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    wait_until(killed_worker.has_left_the_database, 60)
    export.refresh_from_db()
    assert (export.state, ExportPart.objects.count()) == (JobState.RUNNING, 0)
    Export.objects.update(lease_until=Now() - timedelta(seconds=1))
    assert jobs.run_due() == 1
    export.refresh_from_db()
    assert (export.state, export.attempts) == (JobState.DONE, 2)
    [part] = export.parts.all()
    assert "table 5" in gzip.decompress(bytes(part.content)).decode()
