"""Processes do not start with wrong settings, nor with keys that do not open the sealed data."""

import os
import subprocess
import sys

import pytest
from django.db import connection

from core import vault
from operations.data_protection import resealing
from tests.commands import warm
from tests.stack import ROOT

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "command", [["-c", "import config.application"], ["-m", "celery", "-A", "config", "worker"]]
)
def test_servers_and_workers_refuse_to_start_with_invalid_settings(command: list[str]) -> None:
    environment = os.environ | {"SECRET_KEY": "", "RATE_LIMIT": "many", "WEBHOOK_ALLOWED_NETWORKS": "home"}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "50 random characters" in done.stderr
    assert "RATE_LIMIT cannot be read" in done.stderr
    assert "WEBHOOK_ALLOWED_NETWORKS cannot be read" in done.stderr


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "command",
    [
        ["-c", "import config.application"],
        ["-m", "celery", "-A", "config", "worker"],
        ["-m", "celery", "-A", "config", "beat"],
        ["manage.py", "import_statement", "--bank", "sandbox", "day.csv"],
        ["manage.py", "connect_bank", "mch_1", *("--bank", "scb", "--biller-id", "1", "--credentials", "-")],
        ["manage.py", "payout_accounts", "list", "mch_1"],
    ],
    ids=["web", "worker", "beat", "import_statement", "connect_bank", "payout_accounts"],
)
def test_no_process_starts_with_a_wrong_encryption_key(command: list[str]) -> None:
    resealing.write_key_check()
    made = connection.settings_dict
    url = "postgresql://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**made)
    done = subprocess.run(
        [*(warm() if command[0] == "manage.py" else [sys.executable]), *command],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": url, "FIELD_ENCRYPTION_KEYS": vault.new_key()},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert "FIELD_ENCRYPTION_KEYS do not open what is in the database." in done.stdout + done.stderr
