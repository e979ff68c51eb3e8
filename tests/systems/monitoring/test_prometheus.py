"""A real Prometheus with our configuration and rules scrapes the service. Its alerts name what is wrong."""

import shutil
import subprocess
from collections.abc import Iterator
from datetime import time
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from config.devstack import ports
from operations.nightly import runs
from tests.conftest import Shop
from tests.operations.audit.test_daily_close import damage
from tests.stack import STOP_SECONDS, wait_until
from tests.systems.monitoring.test_monitoring_files import FOLDER, RULES

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
TOKEN = "the-token-of-the-monitoring"
START_SECONDS = 30


@pytest.fixture
def prometheus(live_server: LiveServer, settings: Settings, tmp_path: Path) -> Iterator[str]:
    """The URL of the API of a Prometheus that scrapes the service each second."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is missing: apt install prometheus")
    settings.MONITORING_TOKEN = TOKEN
    listens_at = f"127.0.0.1:{ports.pick()}"
    url = f"http://{listens_at}"
    files = [f"--config.file={configuration(tmp_path, live_server)}", f"--storage.tsdb.path={tmp_path}/data"]
    with (tmp_path / "prometheus.log").open("w") as log:
        command = [program, *files, f"--web.listen-address={listens_at}"]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: is_ready(url), START_SECONDS)
        yield f"{url}/api/v1"
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def configuration(folder: Path, live_server: LiveServer) -> Path:
    """Write our sample file, with addresses and files of the test."""
    (folder / "token").write_text(f"{TOKEN}\n")
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(RULES)]
    del config["alerting"]
    scrape, _ = config["scrape_configs"]
    config["scrape_configs"] = [scrape]
    scrape["static_configs"] = [{"targets": [live_server.url.removeprefix("http://")]}]
    scrape["authorization"] = {"credentials_file": str(folder / "token")}
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(config))
    return path


def is_ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/-/ready", timeout=10).ok
    except requests.ConnectionError:
        return False


def read(url: str) -> Any:
    return requests.get(url, timeout=10).json()["data"]


def test_prometheus_alerts_about_wrong_books_and_a_job_that_never_ran(
    prometheus: str, shop: Shop, settings: Settings
) -> None:
    shop.qr_code()
    damage("UPDATE payments_payment SET status = 'succeeded', completed_at = created_at")
    settings.NIGHTLY_JOBS = {"audit": time(0)}
    runs.run_due()
    settings.NIGHTLY_JOBS = {"audit": time(0), "reconcile": time(0)}

    def alerts() -> set[tuple[str, str, str]]:
        found = [(each["state"], each["labels"]) for each in read(f"{prometheus}/alerts")["alerts"]]
        return {
            (labels["alertname"], labels["nightly_job"], state)
            for state, labels in found
            if "nightly_job" in labels
        }

    expected = {("BooksWrong", "audit", "firing"), ("JobNeverRan", "reconcile", "pending")}
    wait_until(lambda: alerts() == expected, START_SECONDS)
    # Prometheus renames a label of ours that it sets itself.
    assert not [name for name in read(f"{prometheus}/labels") if name.startswith("exported_")]
