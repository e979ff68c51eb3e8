"""The service behind a real PgBouncer in transaction mode."""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import requests

from config.devstack import ports
from tests import pgbouncer
from tests.flows.conftest import ShopClient
from tests.pooled_stack import PooledStack
from tests.stack import ROOT, Stack, wait_until
from tests.systems.brokers.lives import Lives
from tests.webhook_receiver import Receiver

pytestmark = pytest.mark.slow

IGNORING = {"ignore_startup_parameters": "options"}
LIMITS = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that PgBouncer can read: it does not run as root."""
    with tempfile.TemporaryDirectory(prefix="pooler-") as made:
        Path(made).chmod(0o711)
        yield Path(made) / "pgbouncer"


def environ(stack: Stack, database_url: str, **settings: str) -> dict[str, str]:
    return {**os.environ, **stack.env, "DATABASE_URL": database_url, **settings}


def refusal(stack: Stack, database_url: str, **settings: str) -> str:
    """The output of a web server that does not start."""
    done = subprocess.run(
        [sys.executable, "-m", "config.server"],
        cwd=ROOT,
        env=environ(stack, database_url, **settings),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    return done.stderr


@contextmanager
def web(stack: Stack, database_url: str, prepare: str) -> Iterator[str]:
    """Run another web server of the instance with this database URL."""
    port = str(ports.pick())
    server = subprocess.Popen(
        [sys.executable, "-m", "config.server"],
        cwd=ROOT,
        env=environ(stack, database_url, DATABASE_PREPARE=prepare, PORT=port),
    )
    base_url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _answers(base_url) or server.poll() is not None, 120)
        assert server.poll() is None
        yield base_url
    finally:
        server.terminate()
        server.wait(60)


def _answers(base_url: str) -> bool:
    try:
        return requests.get(f"{base_url}/healthz", timeout=10).status_code == 200
    except requests.RequestException:
        return False


def test_pgbouncer_without_startup_options_is_refused_with_a_hint(stack: Stack, folder: Path) -> None:
    with pgbouncer.in_front_of(stack.env["DATABASE_URL"], folder) as url:
        shown = refusal(stack, url)
    assert "unsupported startup parameter" in shown
    assert "Set DATABASE_PREPARE=0" in shown


def test_pgbouncer_is_refused_with_prepared_statements(stack: Stack, folder: Path) -> None:
    with pgbouncer.in_front_of(stack.env["DATABASE_URL"], folder, **IGNORING) as url:
        shown = refusal(stack, url)
    assert "The database is behind a pooler, and DATABASE_PREPARE is on." in shown
    assert "Set DATABASE_PREPARE=0" in shown


def test_pgbouncer_that_does_not_follow_prepared_statements_is_refused(stack: Stack, folder: Path) -> None:
    off = {"max_prepared_statements": "0"} if pgbouncer.follows_statements() else {}
    stack.manage("set_role_limits")
    with pgbouncer.in_front_of(stack.env["DATABASE_URL"], folder, **off) as url:
        shown = refusal(stack, url, DATABASE_PREPARE="pooler")
    assert "The pooler does not follow prepared statements." in shown
    assert "Set max_prepared_statements in PgBouncer 1.22 or newer" in shown


def test_pgbouncer_without_session_timeouts_is_refused(stack: Stack, folder: Path) -> None:
    with psycopg.connect(stack.env["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(f"ALTER ROLE CURRENT_USER IN DATABASE {connection.info.dbname} RESET ALL")
    with pgbouncer.in_front_of(stack.env["DATABASE_URL"], folder) as url:
        shown = refusal(stack, url, DATABASE_PREPARE="0")
    assert f"Sessions of the database have no {', '.join(LIMITS)}." in shown
    assert "set_role_limits" in shown


@pytest.mark.parametrize("prepare", ["0", "pooler"])
def test_payments_and_statement_timeouts_work_behind_pgbouncer(
    stack: Stack, folder: Path, prepare: str
) -> None:
    follows = pgbouncer.follows_statements()
    if prepare == "pooler" and not follows:
        pytest.skip("This version of PgBouncer does not follow prepared statements.")
    stack.manage("set_role_limits")
    settings = {"max_prepared_statements": "200"} if follows else {}
    with pgbouncer.in_front_of(stack.env["DATABASE_URL"], folder, **settings) as url:
        with psycopg.connect(url) as pooled:
            values = [pooled.execute(f"SHOW {name}").fetchone() for name in LIMITS]
        assert values == [("5s",), ("30s",), ("15s",)]
        with web(stack, url, prepare) as base_url:
            client = ShopClient(base_url, stack.secret_key)
            with ThreadPoolExecutor(8) as clients:
                codes = list(clients.map(lambda _: client.qr_code(), range(40)))
                paths = [f"/v1/payments/{code['payment_id']}" for code in codes]
                statuses = Counter(payment["status"] for payment in clients.map(client.get, paths * 3))
            assert statuses == {"pending": 120}
            assert requests.get(f"{base_url}/readyz", timeout=60).status_code == 200
            client.pay(codes[0])
            client.wait_for_status(codes[0], "succeeded")
            listed = client.get("/v1/transactions")["transactions"]
            assert codes[0]["payment_id"] in {one["payment_id"] for one in listed}
        with psycopg.connect(url, autocommit=True) as session:
            statements = session.execute("SELECT statement FROM pg_prepared_statements").fetchall()
        assert any("payments_payment" in text for (text,) in statements) == (prepare == "pooler")


def test_whole_life_of_a_payment_works_with_all_processes_behind_pgbouncer(
    tmp_path: Path, endpoint: Receiver
) -> None:
    with PooledStack.on_shared_server(tmp_path / "data", RATE_LIMIT="0") as pooled:
        lives = Lives(ShopClient(pooled.base_url, pooled.secret_key), endpoint)
        with lives.without_end(shops=4):
            lives.wait_for_more(20)
        lives.wait_until_all_are_told()
        lives.send_money_out()
        assert "The books are right" in pooled.manage("audit")
