"""The formula for database connections holds for real processes under load."""

import json
import secrets
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest
import requests

from config import connection_count
from config.devstack import ports
from config.workers import ALL, WORKERS
from tests import database_template, webhook_receiver
from tests.stack import ROOT, wait_until
from tests.systems.deployment.installation import Installation

pytestmark = pytest.mark.slow

WEB_WORKERS, WEB_THREADS, CARD_CONCURRENCY = 2, 3, 2
SECRET = "whsec_" + "c2VjcmV0" * 5
COUNT_SQL = """SELECT application_name, count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid() GROUP BY 1"""
SETTINGS = {
    "WEB_WORKERS": str(WEB_WORKERS),
    "WEB_THREADS": str(WEB_THREADS),
    "CARD_CONCURRENCY": str(CARD_CONCURRENCY),
    "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
    "WEBHOOK_ALLOW_HTTP": "1",
    "RATE_LIMIT": "0",
}


@pytest.fixture(scope="module")
def deployment(installed: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """All processes. Each has a name in PostgreSQL."""
    made = Installation(
        installed.environment,
        tmp_path_factory.mktemp("connections") / "home",
        settings={
            **SETTINGS,
            "DATABASE_URL": database_template.new_database(f"connections_{secrets.token_hex(4)}"),
            "SANDBOX_ACQUIRER_URL": f"http://127.0.0.1:{ports.pick()}",
        },
    )
    with ExitStack() as stack:

        def run(name: str, *arguments: str) -> None:
            stack.enter_context(made.running(*arguments, PGAPPNAME=name))

        run("web", "web")
        for name in WORKERS:
            run(name, "worker", "--queues", name, "--name", name)
        run("beat", "beat")
        run("sandbox", "manage", "sandbox_bank")
        made.wait_for("/readyz")
        yield made


def test_connections_under_load_stay_within_the_formula(deployment: Installation) -> None:
    created = deployment.run("manage", "create_merchant", "--name", "Busy", "--mode", "test", "--json")
    headers = {"Authorization": f"Bearer {json.loads(created.stdout)['secret_key']}"}

    def send(method: str, path: str, **options: object) -> requests.Response:
        url = deployment.base_url + path
        return requests.request(method, url, headers=headers, timeout=120, **options)  # type: ignore[arg-type]

    def life(number: int) -> int:
        if number % 3 == 0:
            card = {"token_id": "tok_test_visa", "amount": 10_000, "currency": "THB"}
            return send("POST", "/v1/payments", json=card).status_code
        code = send("POST", "/v1/qr-codes", json={"amount": 10_000, "currency": "THB"}).json()
        paid = {"qr_data": code["qr_data"], "scenario": "paid"}
        return send("POST", "/sandbox/v1/payments", json=paid).status_code

    most: Counter[str] = Counter()
    with (
        webhook_receiver.running_receiver() as receiver,
        psycopg.connect(deployment.settings["DATABASE_URL"], autocommit=True) as database,
        ThreadPoolExecutor(16) as clients,
    ):
        hook = {"url": receiver.url(), "events": ["payment.pending", "payment.succeeded"], "secret": SECRET}
        assert send("POST", "/v1/webhooks", json=hook).status_code in (200, 201)
        lives = [clients.submit(life, number) for number in range(240)]

        def is_over() -> bool:
            for name, count in database.execute(COUNT_SQL).fetchall():
                most[name] = max(most[name], count)
            return all(each.done() for each in lives)

        wait_until(is_over, 300)
    # 503: one merchant gets half of the card payments that may wait at once.
    assert {each.result() for each in lives} <= {200, 201, 503}
    limits = {
        "web": connection_count.of_web(WEB_WORKERS, WEB_THREADS, CARD_CONCURRENCY),
        **{name: connection_count.of_worker(worker) for name, worker in WORKERS.items()},
        "beat": connection_count.BEAT,
    }
    assert {name: most[name] for name in limits if most[name] > limits[name]} == {}
    # The load was real: the threads that answer had connections.
    assert most["web"] > WEB_WORKERS * WEB_THREADS


def test_documentation_has_the_sums_of_the_formula() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    for name, worker in WORKERS.items():
        assert f"`{name}` {connection_count.of_worker(worker)}" in page
    assert f"in one process {connection_count.of_worker(ALL)}" in page
    web = connection_count.of_web(2, 4, 8)
    workers = sum(map(connection_count.of_worker, WORKERS.values()))
    assert f"(4 + 16 + 4) + {workers} + 2 + 5 = {connection_count.of_deployment(web)}." in page
