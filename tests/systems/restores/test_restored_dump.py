"""A dump that is older than the last payouts is restored: the bank gets no order twice."""

import os
import signal
import subprocess
from pathlib import Path

import psycopg
import pytest

from config.devstack.postgres_programs import find_programs
from tests.stack import Stack
from tests.systems.restores.lost_machine import LostMachine, refused

pytestmark = pytest.mark.slow


def test_dump_older_than_the_last_payouts_sends_none_of_them_again(tmp_path: Path) -> None:
    with Stack.on_shared_server(tmp_path / "data", RATE_LIMIT="0", SPEEDUP="20") as stack:
        shop = LostMachine.on(stack, find_programs())
        shop.receive(500_000)
        os.kill(stack.pids["worker"], signal.SIGSTOP)
        waiting = shop.withdraw(100_000)
        dump = subprocess.check_output([shop.programs / "pg_dump", stack.owner_url])
        os.kill(stack.pids["worker"], signal.SIGCONT)
        shop.wait_for(waiting)
        lost = shop.withdraw(120_000)
        shop.wait_for(lost)
        sent, memory = shop.orders_at_bank(), shop.memory_of_bank()
        stack.stop()

        put_back(stack.owner_url)
        shop.load(dump)
        shop.remind_bank(memory)
        stack.start()

        assert shop.is_in_safe_mode()
        shop.wait_for(waiting)  # it was found at the bank
        new = shop.withdraw(30_000)
        assert lost in stack.manage("resume_transfers"), "Redis has its id"
        shown = refused(stack, "compare_orders", "-", given=shop.list_of_bank())
        assert f"missing here: {lost}" in shown and waiting not in shown
        shop.record_lost(lost, 120_000)
        shop.wait_for(lost)
        stack.manage("compare_orders", "-", given=shop.list_of_bank())
        assert (shop.status(new), shop.orders_at_bank()) == ("pending", sent)

        shop.resume()
        shop.wait_for(new)
        assert shop.orders_at_bank() == sent | {new: 30_000}
        assert not shop.is_in_safe_mode()
        assert shop.client.get("/v1/balance")["available"] == 500_000 - 100_000 - 120_000 - 30_000
        stack.manage("audit")


def put_back(url: str) -> None:
    """Make the database empty, as somebody does who restores a dump into the same server."""
    server, _, name = url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = on")
