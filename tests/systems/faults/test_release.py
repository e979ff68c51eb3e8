"""A release while shops work: the database changes, and the old and the new version answer side by side."""

import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
import requests

from config.devstack import ports
from config.workers import ALL, arguments_for
from tests.flows.conftest import ShopClient
from tests.stack import ROOT, STOP_SECONDS, Stack, wait_until
from tests.systems.faults import load
from tests.systems.faults.hooks import Hook, events_by_payment
from tests.webhook_receiver import Receiver

pytestmark = pytest.mark.slow
CODES, SHOPS = 20, 4
SECONDS = 120
INDEX_IS_VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'payment_by_branch'::regclass"
CELERY = (sys.executable, "-m", "celery", "--quiet", "-A", "config.celery:app")
LEFT_OUT = (".git", ".venv", ".data*", "tests", "bench", "clients", "node_modules", "__pycache__")
NEW_FIELD = "branch = models.CharField(max_length=35, null=True)"
ADD_FIELD = """
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("payments", "{after}")]
    operations = [migrations.AddField("payment", "branch", models.CharField(max_length=35, null=True))]
"""
BUILD_INDEX = """
from django.db import migrations, models

from core.database.migrations import BuildIndex


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("payments", "8000_branch")]
    operations = [BuildIndex("payment", models.Index(fields=["branch"], name="payment_by_branch"))]
"""


class Release:
    """The processes of one version beside those of an instance: a web server, and a worker of all queues."""

    def __init__(self, code: Path, stack: Stack) -> None:
        self.code, self.log = code, stack.log
        self.port = ports.pick()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.environ = {**stack.environ, **stack.env, "PORT": str(self.port)}

    def migrate(self) -> None:
        command = [sys.executable, "manage.py", "migrate", "--verbosity=0"]
        subprocess.run(command, cwd=self.code, env=self.environ, check=True, timeout=SECONDS)

    @contextmanager
    def running(self, name: str) -> Iterator["list[subprocess.Popen[bytes]]"]:
        """Run both processes; the block may end them before."""
        arguments = arguments_for(name, ALL)
        commands = [[sys.executable, "-m", "config.server"], [*CELERY, *arguments]]
        with self.log.open("ab") as log, ExitStack() as ending:
            processes = []
            for command in commands:
                process = subprocess.Popen(command, cwd=self.code, env=self.environ, stdout=log, stderr=log)
                ending.callback(process.kill)
                processes.append(process)
            wait_until(self.answers, SECONDS)
            yield processes

    def answers(self) -> bool:
        with suppress(requests.RequestException):
            return requests.get(f"{self.base_url}/healthz", timeout=10).status_code == 200
        return False


def end(processes: "list[subprocess.Popen[bytes]]") -> list[int]:
    """Ask the processes to end, as a service manager does; return their exit codes."""
    for process in processes:
        process.send_signal(signal.SIGTERM)
    return [process.wait(STOP_SECONDS) for process in processes]


@pytest.fixture(scope="module")
def next_version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the next release: payments have one more column, with an index."""
    code = tmp_path_factory.mktemp("next") / "code"
    shutil.copytree(ROOT, code, ignore=shutil.ignore_patterns(*LEFT_OUT))
    models = code / "payments/models.py"
    text = models.read_text()
    changed = text.replace("    expires_at = ", f"    {NEW_FIELD}\n    expires_at = ", 1)
    assert changed != text
    models.write_text(changed)
    folder = code / "payments/migrations"
    last = max(path.stem for path in folder.glob("0*.py"))
    (folder / "8000_branch.py").write_text(ADD_FIELD.format(after=last))
    (folder / "8001_branch_index.py").write_text(BUILD_INDEX)
    return code


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """An instance of its own, because its database changes."""
    with Stack.on_shared_server(tmp_path_factory.mktemp("release") / "data", RATE_LIMIT="0") as running:
        yield running


def test_release_fails_no_request_and_loses_no_event(
    stack: Stack,
    next_version: Path,
    shop_client: ShopClient,
    endpoint: Receiver,
    database: psycopg.Connection,
) -> None:
    old, new = Release(ROOT, stack), Release(next_version, stack)
    shop_client.base_url = old.base_url
    with old.running("old") as old_processes, ExitStack() as until_checked:
        hook = Hook.register(shop_client, endpoint, "/hook")
        with load.steady(shop_client, shops=SHOPS, pause=0.5) as codes:
            codes.wait_for_more(CODES)
            new.migrate()
            new_processes = until_checked.enter_context(new.running("new"))
            codes.wait_for_more(CODES)  # the old version works on the changed database
            shop_client.base_url = new.base_url  # as a proxy that sends no more requests to a server
            codes.wait_for_more(SHOPS * 2)
            assert end(old_processes) == [0, 0]
            codes.wait_for_more(CODES)
        assert {each.status for each in codes.answers} == {200}
        events = events_by_payment(shop_client)
        assert events.keys() == codes.payment_ids
        hook.wait_for_success(len(events))
        assert hook.delivered() == Counter(events.values())
        assert end(new_processes) == [0, 0]
    assert database.execute(INDEX_IS_VALID).fetchone() == (True,)
    stack.manage("audit")
