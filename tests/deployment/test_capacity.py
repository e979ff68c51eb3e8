"""`thaiqr-server capacity` of an installed service: it measures, touches nothing, and cleans up."""

import os
import signal
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.deployment.installation import Installation
from tests.stack import wait_until

pytestmark = pytest.mark.slow


def rows(installed: Installation) -> tuple[object, ...]:
    """What the service has: its rows, and whether a database of a measurement is left."""
    url = installed.settings["DATABASE_URL"]
    with psycopg.connect(url) as connection:
        found = connection.execute(
            """SELECT (SELECT count(*) FROM merchants_merchant), (SELECT count(*) FROM payments_payment),
                      (SELECT count(*) FROM transfers_transfer),
                      (SELECT count(*) FROM pg_database WHERE datname = current_database() || '_capacity')"""
        ).fetchone()
    assert found is not None
    return found


def test_figures_advice_and_page_come_from_the_processes_of_production(
    installed: Installation, tmp_path: Path
) -> None:
    before, page = rows(installed), tmp_path / "capacity.html"
    done = installed.run("capacity", "--seconds", "5", "--html", str(page), is_checked=False)
    assert done.returncode == 0, done.stderr
    for expected in (
        "whole lives a second", "codes a second", "deliveries a second", "rows a day", "disk a day",
        "Ends first: ", "Add first: ", "Plan for ",
    ):  # fmt: skip
        assert expected in done.stdout
    assert "whole lives, 16 at once" in done.stderr  # the progress
    assert page.read_text().count("<svg") == 4
    assert rows(installed) == before
    assert list(installed.home.iterdir()) == []


def sessions(installed: Installation) -> set[str]:
    """The processes of the measurement that PostgreSQL knows."""
    name = urlsplit(installed.settings["DATABASE_URL"]).path.lstrip("/") + "_capacity"
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        found = connection.execute("SELECT application_name FROM pg_stat_activity WHERE datname = %s", [name])
        return {each for (each,) in found}


def test_end_by_a_signal_leaves_no_database_and_no_process(installed: Installation) -> None:
    before = rows(installed)
    with installed.running("capacity") as process:
        wait_until(lambda: {"web", "webhooks"} <= sessions(installed) or process.poll() is not None, 120)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 128 + signal.SIGINT
    assert rows(installed) == before
    assert not sessions(installed)
