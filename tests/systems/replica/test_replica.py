"""Lists from a real standby: they never lack a row, whether it is current, behind, away or frozen."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
import requests

from tests import system_postgres
from tests.flows.conftest import ShopClient
from tests.flows.staff_browser import StaffBrowser
from tests.memory import server_folder
from tests.stack import ROOT, Stack, wait_until
from tests.systems.replica.standby import Pair

pytestmark = pytest.mark.slow
LIST = "/v1/payments?limit=1"
SECONDS = 60.0
# A frozen standby is cut off after one second, and the primary answers.
SLOWEST = 15.0
STATISTICS_SECONDS = 2.0
# A connection without work reports its last reads after ten seconds.
IDLE_STATISTICS_SECONDS = 12.0
EXPORTS = "/admin/exports/"


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with server_folder("thai-qr-replica-") as folder:
        made = Pair(folder)
        try:
            made.start()
            yield made
        finally:
            made.stop()


@pytest.fixture(scope="module")
def stack(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with Stack(tmp_path_factory.mktemp("replica") / "data", RATE_LIMIT="0", **pair.urls) as running:
        yield running


@pytest.fixture(scope="module")
def client(stack: Stack) -> ShopClient:
    made = json.loads(stack.manage("create_merchant", "--name", "Somtam", "--mode", "test", "--json"))
    return ShopClient(stack.base_url, made["secret_key"])


def is_served(pair: Pair, client: ShopClient) -> bool:
    return is_read(pair, lambda: client.get(LIST))


def is_read(
    pair: Pair, read: Callable[[], object], rows: int = 1, seconds: float = STATISTICS_SECONDS
) -> bool:
    """Whether so many payments were read from the standby. Its statistics come a moment late."""
    expected = pair.rows_read() + rows
    read()
    deadline = time.monotonic() + seconds
    while pair.rows_read() < expected and time.monotonic() < deadline:
        time.sleep(0.1)
    return pair.rows_read() >= expected


def lists_each_new_code(client: ShopClient, codes: int) -> None:
    for _ in range(codes):
        code = client.qr_code()
        (newest,) = client.get(LIST)["payments"]
        assert newest["payment_id"] == code["payment_id"]


def metrics(stack: Stack) -> str:
    return requests.get(f"{stack.base_url}/metrics", timeout=60).text


def check(stack: Stack) -> dict[str, str]:
    """What `thaiqr-server check` says of the replica."""
    command = [sys.executable, "-m", "config.command_line", "check", "--json"]
    environ = {**stack.environ, **stack.env}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    (found,) = [each for each in json.loads(done.stdout)["findings"] if each["subject"] == "replica"]
    return dict(found)


def test_standby_answers_lists_and_lacks_no_row(pair: Pair, stack: Stack, client: ShopClient) -> None:
    lists_each_new_code(client, 20)
    wait_until(lambda: is_served(pair, client), SECONDS)
    lists_each_new_code(client, 20)
    assert "thaiqr_replica_up 1.0" in metrics(stack)
    assert check(stack)["level"] == "ok"
    rows = requests.get(
        f"{client.base_url}/v1/payments",
        headers={"Authorization": f"Bearer {client.secret_key}", "Accept": "text/csv"},
        timeout=60,
    ).text.splitlines()
    assert len(rows) == 1 + 40


def test_standby_answers_lists_of_the_console(pair: Pair, stack: Stack) -> None:
    staff = StaffBrowser(stack.base_url, stack.demo["admin_user"], stack.demo["admin_password"])
    wait_until(lambda: is_read(pair, lambda: staff.read("/admin/payments/payment/")), SECONDS)


def test_standby_answers_background_exports(pair: Pair, stack: Stack, client: ShopClient) -> None:
    """Only lists and exports read there, and no list is open."""
    codes = [client.qr_code()["payment_id"] for _ in range(5)]
    staff = StaffBrowser(stack.base_url, stack.demo["admin_user"], stack.demo["admin_password"])
    files: list[str] = []

    def export() -> None:
        files.append(exported(staff))

    wait_until(lambda: is_read(pair, export, len(codes), IDLE_STATISTICS_SECONDS), 2 * SECONDS)
    assert [code for code in codes if code not in files[-1]] == []


def exported(staff: StaffBrowser) -> str:
    """The file that a worker writes of all payments."""
    known = set(re.findall(f'href="({EXPORTS}[0-9]+/)"', staff.read(EXPORTS)))
    staff.submit(EXPORTS, {"list": "payments.payment", "query": "", "file_type": "csv"})

    def new() -> set[str]:
        return set(re.findall(f'href="({EXPORTS}[0-9]+/)"', staff.read(EXPORTS))) - known

    wait_until(lambda: bool(new()), SECONDS)
    return staff.read(new().pop())


def test_primary_answers_while_the_standby_is_behind(pair: Pair, stack: Stack, client: ShopClient) -> None:
    pair.pause_replay()
    try:
        lists_each_new_code(client, 5)  # the standby does not have them
        lag = next(
            line for line in metrics(stack).splitlines() if line.startswith("thaiqr_replica_lag_bytes")
        )
        assert float(lag.split()[1]) > 0
    finally:
        pair.resume_replay()
    wait_until(lambda: is_served(pair, client), SECONDS)


def test_primary_answers_while_the_standby_is_frozen(pair: Pair, client: ShopClient) -> None:
    frozen = system_postgres.processes_of(pair.running["standby"].pid)
    system_postgres.send(signal.SIGSTOP, frozen)
    try:
        started = time.monotonic()
        lists_each_new_code(client, 3)
        assert time.monotonic() - started < 3 * SLOWEST
    finally:
        system_postgres.send(signal.SIGCONT, frozen)
    wait_until(lambda: is_served(pair, client), SECONDS)


def test_primary_answers_while_the_standby_is_away(pair: Pair, stack: Stack, client: ShopClient) -> None:
    pair.stop_standby()
    try:
        lists_each_new_code(client, 5)
        assert "thaiqr_replica_up 0.0" in metrics(stack)
        assert check(stack)["level"] == "problem"
    finally:
        pair.start_standby()
    wait_until(lambda: is_served(pair, client), SECONDS)
    lists_each_new_code(client, 5)
